"""Page images are read whatever way they lie, with confidence and boxes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter
from tests.support.page_images import LINES, draw_page

from conspectus.sources.files.ocr import BOX_UNITS, Recognizer, load_recognizer, recognition_problem
from conspectus.sources.files.ocr_languages import ALL_LANGUAGES

WORDS = " ".join(LINES).split()


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    pytest.importorskip("tesserocr")
    return load_recognizer("eng")


def test_lines_are_read_with_confidence_and_a_box(recognizer: Recognizer) -> None:
    page = recognizer.read(draw_page())
    assert page.text.split() == WORDS
    assert page.confidence > 80
    assert page.words == len(WORDS)
    left, top, right, bottom = page.paragraphs[0].box
    assert page.paragraphs[0].start == 0
    assert abs(left - 100 * BOX_UNITS / 1_300) < 10 and abs(top - 100 * BOX_UNITS / 700) < 20
    assert left < right < BOX_UNITS and top < bottom < BOX_UNITS


@pytest.mark.parametrize("degrees", [3, -2, 90, 180])
def test_a_skewed_or_turned_page_reads_the_same(recognizer: Recognizer, degrees: int) -> None:
    turned = draw_page([*LINES, *LINES]).rotate(degrees, expand=True, fillcolor=255)
    assert recognizer.read(turned).text.split() == 2 * WORDS


def test_the_noise_of_a_scanner_hides_no_letters(recognizer: Recognizer) -> None:
    paper = np.asarray(draw_page().filter(ImageFilter.GaussianBlur(0.8)), dtype=np.float32)
    noise = np.random.default_rng(1).normal(0, 45, paper.shape)
    scan = Image.fromarray((0.9 * paper + 12 + noise).clip(0, 255).astype(np.uint8))
    assert recognizer.read(scan).text.split() == WORDS


def test_the_box_of_a_turned_page_is_where_it_is_seen(recognizer: Recognizer) -> None:
    page = recognizer.read(draw_page([*LINES, *LINES]).rotate(180))
    left, top, right, bottom = page.paragraphs[0].box
    assert left < right and abs(right - 923) < 10
    assert top < bottom and abs(bottom - 847) < 20


@pytest.mark.parametrize("size", [(1, 1), (40, 3_000), (600, 600)])
def test_an_empty_page_has_no_text(recognizer: Recognizer, size: tuple[int, int]) -> None:
    page = recognizer.read(draw_page((), size))
    assert (page.text, page.words, page.paragraphs) == ("", 0, ())


def test_a_word_divided_at_the_end_of_a_line_is_whole(recognizer: Recognizer) -> None:
    text = recognizer.read(draw_page(("The keeper of the light-", "house writes the log of the year."))).text
    assert text == "The keeper of the lighthouse writes the log of the year."


def test_a_huge_page_is_scaled_down(recognizer: Recognizer) -> None:
    page = draw_page(LINES).resize((6_500, 3_500))
    assert recognizer.read(page).text.split() == WORDS


def test_no_further_page_is_read_when_the_time_is_over(recognizer: Recognizer) -> None:
    recognizer.begin_file(0)
    assert recognizer.is_late()
    recognizer.begin_file(1_000)
    assert not recognizer.is_late()


def test_a_language_without_data_is_named(recognizer: Recognizer) -> None:
    with pytest.raises(ValueError, match="no data for klingon"):
        load_recognizer("eng+klingon")


def test_a_problem_names_what_is_missing_and_what_there_is(tmp_path: Path) -> None:
    pytest.importorskip("tesserocr")
    assert recognition_problem() == recognition_problem("eng") == ""
    assert "no data for klingon" in recognition_problem("eng+klingon")
    assert "which has deu, eng" in recognition_problem("klingon").replace("eng, deu", "deu, eng")
    assert "no data for any language" in recognition_problem("", str(tmp_path))
    assert "CONSPECTUS_OCR_LANGUAGES" in recognition_problem("klingon")


def test_a_page_of_another_language_is_read_in_all_languages() -> None:
    pytest.importorskip("tesserocr")
    recognizer = load_recognizer("eng+deu")
    recognizer.choice.learn(["eng"] * 100, 96)
    assert recognizer.read(draw_page([*LINES, *LINES], (1_300, 1_000))).text.split() == 2 * WORDS
    assert recognizer.choice.current == "eng"
    german_lines = (
        "Der Leuchtturm wird bei Einbruch der Dunkelheit",
        "eingeschaltet, und montags bringt das Schiff",
    )
    page = recognizer.read(draw_page(german_lines))
    assert page.text.split() == " ".join(german_lines).split()
    assert recognizer.choice.current == ALL_LANGUAGES

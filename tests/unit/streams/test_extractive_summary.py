"""A summary without a model: what most is about, from every part, nothing twice."""

import numpy as np
import pytest
from tests.support.caption_samples import caption

from conspectus.errors import InvalidInput
from conspectus.model.captions import Caption
from conspectus.streams.extractive_summary import MAX_LENGTH, select_captions
from conspectus.text.analyzer import Analyzer

TERMS = Analyzer("english").terms


def extract_texts(captions: list[Caption], maximum: int, rows: list[list[float]] | None = None) -> list[str]:
    vectors = None if rows is None else np.asarray(rows, np.float32)
    return [text for _, text in select_captions(captions, maximum, terms=TERMS, vectors=vectors)]


def test_nothing_comes_of_nothing() -> None:
    assert extract_texts([], 5) == []
    assert extract_texts([caption("  ", 0), caption("\n", 1)], 5) == []
    assert extract_texts([caption("a car", 0)], 0) == []


def test_what_most_captions_are_about_is_chosen() -> None:
    captions = [
        caption("The forklift lifts a pallet.", 0),
        caption("The forklift carries the pallet to the truck.", 10),
        caption("A bird.", 20),
        caption("The pallet falls from the forklift.", 30),
    ]
    assert "forklift" in extract_texts(captions, 1)[0]
    assert "A bird." not in extract_texts(captions, 3)


def test_every_part_of_the_stream_has_its_share() -> None:
    captions = [caption(f"The goal number {number} is scored.", number) for number in range(90)]
    captions += [caption("The audience leaves the stadium.", 590), caption("It is dark.", 600)]
    selection = select_captions(captions, 3, terms=TERMS)
    assert len(selection) == 3
    assert [selected.start for selected, _ in selection] == sorted(
        selected.start or 0.0 for selected, _ in selection
    )
    assert selection[-1][0].start in {590, 600}


def test_nothing_is_said_twice() -> None:
    captions = [caption("No motion in the hall.", second, key=str(second)) for second in range(50)]
    captions.append(caption("A man enters the hall.", 60))
    assert extract_texts(captions, 10) == ["No motion in the hall.", "A man enters the hall."]


def test_vectors_count_where_all_have_one() -> None:
    captions = [caption(f"word{number}", number) for number in range(4)]
    rows = [[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, 0.8]]
    assert extract_texts(captions, 1, rows) == ["word2"]
    assert extract_texts(captions, 1, rows[:2]) == extract_texts(captions, 1)


def test_captions_without_words_and_without_times_are_chosen_by_place() -> None:
    assert extract_texts([caption("!!!", key="a"), caption("???", key="b")], 2) == ["!!!", "???"]
    assert len(extract_texts([caption(f"\u4f60\u597d {number}") for number in range(6)], 3)) == 3


def test_of_a_long_caption_one_sentence_is_shown() -> None:
    filler = "Something else happens that nobody speaks of again in here. " * 10
    long = caption(f"{filler}The goalkeeper saves the penalty.\nOne more thing.", 0)
    assert len(long.text) > MAX_LENGTH
    others = [caption("The goalkeeper saves a penalty.", 1), caption("Penalty! The goalkeeper!", 2)]
    assert extract_texts([long, *others], 3)[0] in {
        "The goalkeeper saves the penalty.",
        "Something else happens that nobody speaks of again in here.",
    }
    assert all("\n" not in text for text in extract_texts([long, *others], 3))


def test_the_order_given_is_kept() -> None:
    captions = [caption(f"Scene {number} with words of its own {number}.", number) for number in range(30)]
    selection = [selected for selected, _ in select_captions(captions, 7, terms=TERMS)]
    assert selection == sorted(selection, key=captions.index)
    assert len({selected.document.id for selected in selection}) == len(selection)


def test_a_checkpoint_ends_the_selection() -> None:
    captions = [caption(f"The goal number {number} is scored.", number) for number in range(90)]
    calls = 0

    def end_after_five() -> None:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise InvalidInput("time", "is over")

    with pytest.raises(InvalidInput):
        select_captions(captions, 3, terms=TERMS, checkpoint=end_after_five)
    assert calls == 6

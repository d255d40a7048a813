"""Pictures: their text and their EXIF, and nothing of where they were taken."""

import struct

import pytest
from PIL import Image
from tests.support.page_images import LINES, draw_page, encode

from conspectus.sources.files.extract import Refused
from conspectus.sources.files.ocr import Recognizer, load_recognizer
from conspectus.sources.files.pictures import read_picture

WORDS = " ".join(LINES).split()
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP")


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    pytest.importorskip("tesserocr")
    return load_recognizer("eng")


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_is_read(recognizer: Recognizer, format: str) -> None:
    extract = read_picture(encode(draw_page(), format), recognizer)
    assert (extract.text.split(), extract.read_by) == (WORDS, "ocr")
    assert extract.media_type == f"image/{format.lower()}"
    assert {place.page for place in extract.places} == {None}


def test_each_page_of_a_tiff_is_read(recognizer: Recognizer) -> None:
    second = draw_page(("The second page is about the bell.",))
    data = encode(draw_page(), "TIFF", save_all=True, append_images=[second])
    extract = read_picture(data, recognizer)
    first, _, second_page = extract.text.rpartition("\n\n")
    assert (first.split(), second_page) == (WORDS, "The second page is about the bell.")
    assert (extract.places[-1].start, extract.places[-1].page) == (len(first) + 2, 2)


def test_letters_on_a_transparent_ground_are_read(recognizer: Recognizer) -> None:
    letters = draw_page().point(lambda gray: 255 - gray)
    page = Image.new("RGBA", letters.size, (0, 0, 0, 0))
    page.paste((0, 0, 0, 255), mask=letters)
    assert read_picture(encode(page, "PNG"), recognizer).text.split() == WORDS


def test_the_exif_says_when_by_whom_and_with_what(recognizer: Recognizer) -> None:
    tags = Image.Exif()
    tags[0x010E], tags[0x013B] = "The lamp room", "Ann Keeper"
    tags[0x010F], tags[0x0110] = "Canon", "Canon EOS R5"
    tags.get_ifd(0x8769)[0x9003], tags.get_ifd(0x8769)[0x9011] = "2024:05:17 06:30:00", "+02:00"
    tags.get_ifd(0x8825)[1], tags.get_ifd(0x8825)[2] = "N", (54.0, 29.0, 12.0)
    # The camera was turned, and says so.
    tags[0x0112] = 6
    extract = read_picture(encode(draw_page().rotate(90, expand=True), "JPEG", exif=tags), recognizer)
    assert extract.text.split() == ["The", "lamp", "room", *WORDS]
    assert (extract.author, extract.occurred) == ("Ann Keeper", "2024-05-17T06:30:00+02:00")
    assert {name: value for name, value in extract.metadata.items() if name != "ocr"} == {
        "camera": "Canon EOS R5"
    }


def test_a_photo_without_words_has_its_description_alone(recognizer: Recognizer) -> None:
    tags = Image.Exif()
    tags[0x010E] = "The harbor in fog"
    photo = encode(Image.effect_noise((800, 600), 60), "JPEG", exif=tags)
    extract = read_picture(photo, recognizer)
    assert (extract.text, extract.read_by, extract.metadata) == ("The harbor in fog", "text", {})


def test_a_picture_without_any_text_says_so(recognizer: Recognizer) -> None:
    extract = read_picture(encode(draw_page(()), "PNG"), recognizer)
    assert (extract.text, extract.notice) == ("", "no text was found in the picture")


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(recognizer: Recognizer) -> None:
    data = bytearray(encode(draw_page((), (8, 8)), "BMP"))
    data[18:26] = struct.pack("<ii", 30_000, 5_000)
    with pytest.raises(Refused, match="has 30000 by 5000 pixels"):
        read_picture(bytes(data), recognizer)
    data[18:26] = struct.pack("<ii", 300_000, 50_000)
    with pytest.raises(Refused, match="damaged picture"):
        read_picture(bytes(data), recognizer)


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_picture_is_refused(recognizer: Recognizer, format: str) -> None:
    data = encode(draw_page(), format)
    for part in (data[:20], data[: len(data) // 2]):
        with pytest.raises(Refused, match="damaged picture"):
            read_picture(part, recognizer)

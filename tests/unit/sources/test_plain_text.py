"""Which bytes are text, with the name of a text file and without one."""

import random

import pytest

from conspectus.errors import UnreadableFile
from conspectus.sources.plain_text import plain_text

BINARY = [
    bytes(range(6)), b"\x00\x01\x02\x03\x04\x05", b"\x01\x02\x03", b"\x7f\x00\x10\x00\x03\x00",
    b"\x89\x00\x12\x00\x34\x00", bytes(range(0x80, 0x86)), b"\x00A\x12\x03\x00\x07",
]  # fmt: skip
SHORT_TEXTS = [
    ("abc", "utf-16-le"), ("abc", "utf-16-be"), ("Grüße", "cp1252"), ("20°C", "cp1252"), ("señor", "cp1252"),
    ("да, это так", "cp1251"), ("これは日本語の文章です", "shift_jis"), ("日本語の文章", "euc_jp"),
    ("오늘은 날씨가", "euc_kr"), ("Привет", "koi8_r"), ("Київ", "cp1251"), ("Здравей", "cp1251"),
    ("Αθήνα 2024", "cp1253"), ("שלום", "cp1255"), ("مرحبا", "cp1256"), ("กรุงเทพ", "cp874"), ("A社", "cp932"),
    ("第3章", "gb18030"), ("서울", "cp949"), ("Élève", "cp1252"), ("ação", "cp1252"), ("smörgås", "cp1252"),
    ("Gdańsk", "cp1250"), ("Čeština", "cp1250"), ("Győr", "cp1250"), ("Güneş", "cp1254"),
    ("Šiauliai", "cp1257"), ("Rīga", "cp1257"), ("cám ơn", "cp1258"), ("McGrün", "cp1252"),
    ("9 \u00b5m", "cp1252"), ("1ª Mª", "cp1252"), ("testสวัสดี", "cp874"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["data", "notes.txt"])
@pytest.mark.parametrize("data", BINARY)
def test_a_few_arbitrary_bytes_are_no_text(data: bytes, name: str) -> None:
    with pytest.raises(UnreadableFile, match="binary data"):
        plain_text(data, name, is_text=name.endswith(".txt"))


@pytest.mark.parametrize(("text", "encoding"), SHORT_TEXTS)
def test_a_short_text_without_a_known_name_is_read(text: str, encoding: str) -> None:
    assert plain_text(text.encode(encoding), "data", is_text=False).text


@pytest.mark.parametrize(("size", "min_refused"), [(6, 155), (8, 170), (16, 195)])
def test_random_bytes_are_rarely_text(size: int, min_refused: int) -> None:
    chance = random.Random(48)
    refused = 0
    for _ in range(200):
        try:
            plain_text(chance.randbytes(size), "data", is_text=False)
        except UnreadableFile:
            refused += 1
    assert refused >= min_refused


def test_a_text_that_was_decoded_twice_is_text() -> None:
    twice = "Größe und Übung, “so” viel später".encode().decode("latin-1")
    assert plain_text(twice.encode(), "data", is_text=False).text == twice


def test_a_text_file_may_have_stray_control_characters() -> None:
    assert plain_text(b"one\x01 two\x02 three", "notes.txt", is_text=True).text == "one\x01 two\x02 three"

"""Encodings of texts that do not declare one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.sources.encoding import decode

GERMAN = "Die Häuser am Fluss sind größer als früher, und die Straße ist schöner geworden.\n"


RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n" * 5


JAPANESE = "これは日本語の文章です。今日はとても良い天気ですね。\n" * 3


CHINESE = "我们今天去公园散步,天气很好,大家都很高兴。\n" * 5


KOREAN = "오늘은 날씨가 매우 좋습니다. 우리는 공원에 갔습니다.\n" * 5


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (GERMAN, "cp1252"), (GERMAN, "iso8859_15"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8_r"),
        (RUSSIAN, "cp866"), (RUSSIAN, "iso8859_5"), (JAPANESE, "shift_jis"), (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"), (CHINESE, "gb2312"), (KOREAN, "euc_kr"), (KOREAN, "iso2022_kr"),
        ("Zażółć gęślą jaźń, proszę państwa.\n" * 3, "iso8859_2"),
        ("Zażółć gęślą jaźń, proszę państwa.\n" * 3, "cp1250"),
        ("Pijamal\u0131 hasta ya\u011f\u0131z şoföre çabucak güvendi.\n" * 3, "iso8859_9"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.\n" * 3, "iso8859_2"),
        ("Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.\n" * 3, "iso8859_7"),
    ],
)  # fmt: skip
def test_older_encodings_are_told_apart(text: str, codec: str) -> None:
    decoded = decode(text.encode(codec))
    assert decoded is not None
    assert decoded.text == text


@pytest.mark.parametrize(
    "text", ["caf\u00e9 au lait", "se\u00f1or", "r\u00e9sum\u00e9", "20\u00b0C", "a \u2013 b", "\u00bd cup"]
)
def test_a_single_accent_is_not_taken_for_another_script(text: str) -> None:
    decoded = decode(text.encode("cp1252"))
    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (text, "cp1252")


# The mark of UTF-16 with a zero character behind it is that of UTF-32.
@given(
    st.text().filter(lambda text: not text.startswith("\0")),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]),
)
def test_marked_unicode_is_always_right(text: str, codec: str) -> None:
    encoded = text.encode(codec, errors="replace")
    decoded = decode(encoded)
    assert decoded is not None
    assert decoded.text == encoded.decode(codec)

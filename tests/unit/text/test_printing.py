"""Texts as they are printed: control characters, and brackets that could be headers."""

import pytest

from conspectus.text.printing import escape_brackets, on_one_line, printable, unlike_headers


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\x0bb\x0cc\x1cd\x1de\x1ef", "a\nb\nc\nd\ne\nf"),
        ("a\x1bb\x7fc\x9fd\ud800e\uffff", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffd"),
        ("a\tb\rc\x85d\u2028e", "a\tb\rc\x85d\u2028e"),
        ("plain\ntext", "plain\ntext"),
        ("", ""),
    ],
)
def test_what_is_printed_has_no_control_characters(text: str, printed: str) -> None:
    assert printable(text) == printed
    assert on_one_line(text) == " ".join(printed.split())


def test_brackets_are_escaped_where_they_could_be_headers() -> None:
    assert unlike_headers("[1] a\n\uff3b2\uff3d b\nsee [3]") == "\\[1] a\n\\\uff3b2\uff3d b\nsee [3]"
    assert unlike_headers("\uff3b2\uff3d b") == "\\\uff3b2\uff3d b"
    assert escape_brackets(" a[1]\n\uff3bb\uff3d ") == "a\\[1\\] \\\uff3bb\\\uff3d"

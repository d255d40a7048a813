"""Lines that match a pattern, and the part of a long line that is shown."""

import re

import pytest

from conspectus.text.lines import LinePattern, find_shown_part


@pytest.mark.parametrize("pattern", ["a", "a$", "^b", "x*", "[^ü]", "b.*a"])
def test_lines_are_those_that_a_simple_search_finds(pattern: str) -> None:
    """Also in blocks, of which a search reads one at a time."""
    text = "a\nüb\n\nab\r\n" * 9_000 + "b a"
    matches = [
        match for match in LinePattern(pattern, literal=False, ignore_case=False).matches(text) if match
    ]
    lines = text.split("\n")
    assert [match.number for match in matches] == [
        number for number, line in enumerate(lines, 1) if re.search(pattern, line)
    ]
    assert [text[match.start : match.end] for match in matches] == [
        lines[match.number - 1] for match in matches
    ]


def test_of_a_long_line_the_part_around_the_match_is_shown() -> None:
    text = "x" * 5_000 + "needle" + "x" * 5_000
    (line,) = (
        match for match in LinePattern("needle", literal=True, ignore_case=False).matches(text) if match
    )
    start, end = find_shown_part(line)
    assert "needle" in text[start:end] and end - start == 400

"""Lines of a text that match a pattern, match in linear time whatever the pattern."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import re2

from conspectus.errors import InvalidInput

MAX_PATTERN: Final = 1_000
MAX_LINE: Final = 400
"""Characters that are shown of a line."""
BLOCK: Final = 65_536
"""Characters after which a search may be interrupted, at the end of a line."""
MAX_BLOCK: Final = 200_000
"""Characters after which a search may be interrupted in any case; no match of a longer line crosses this."""
MAX_PROGRAM: Final = 2_000
"""Instructions of a compiled pattern, which bound the time for each character."""


class MatchedLine(NamedTuple):
    """A line from 1, with its borders in the text and where the match begins."""

    number: int
    start: int
    end: int
    at: int


class LinePattern:
    """A pattern that is searched for line by line.

    Raises InvalidInput for one that is longer than 1,000 characters, or that RE2 does not support.
    """

    def __init__(self, pattern: str, *, literal: bool, ignore_case: bool) -> None:
        if not pattern or len(pattern) > MAX_PATTERN:
            raise InvalidInput("pattern", f"must have 1 to {MAX_PATTERN:,} characters".replace(",", " "))
        options = re2.Options()
        options.log_errors = False
        options.never_nl = True
        options.case_sensitive = not ignore_case
        plain = re2.escape(pattern) if literal else pattern
        try:
            re2.compile(plain, options)
            # The rest of the line is part of the match, so that each line matches once.
            self._regexp = re2.compile(rf"(?m)(?:{plain})[^\n]*", options)
        except (re2.error, UnicodeEncodeError) as fault:
            raise InvalidInput("pattern", f"is not supported: {_reason_of(fault)}") from None
        if self._regexp.programsize > MAX_PROGRAM:
            raise InvalidInput("pattern", "repeats too much; use smaller numbers in braces")

    def matches(self, text: str) -> Iterator[MatchedLine | None]:
        """Yield the matching lines of a text, and None after each block, so that the caller may stop."""
        begin, number, start, last = 0, 1, 0, 0
        while begin < len(text):
            ends = begin + MAX_BLOCK
            end = text.find("\n", begin + BLOCK, ends) + 1 or min(ends, len(text))
            for match in self._regexp.finditer(text[begin:end]):
                at = begin + match.start()
                number, start = _line_of(text, at, number, start)
                if number != last:
                    last, close = number, text.find("\n", at)
                    yield MatchedLine(number, start, len(text) if close < 0 else close, at)
            number, start = _line_of(text, end, number, start)
            begin = end
            yield None


def _line_of(text: str, at: int, number: int, start: int) -> tuple[int, int]:
    """Return number and start of the line of a character, given those of a line before it."""
    passed = text.count("\n", start, at)
    return number + passed, text.rfind("\n", start, at) + 1 if passed else start


def _reason_of(fault: Exception) -> str:
    detail = fault.args[0] if fault.args else ""
    if isinstance(detail, bytes):
        return detail.decode(errors="replace")
    return str(detail)


def find_shown_part(line: MatchedLine) -> tuple[int, int]:
    """Return the borders of the part of a line that is shown: of a long one, the part around the match."""
    if line.end - line.start <= MAX_LINE:
        return line.start, line.end
    start = max(line.start, min(line.at - MAX_LINE // 4, line.end - MAX_LINE))
    return start, min(line.end, start + MAX_LINE)

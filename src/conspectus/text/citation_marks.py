"""Citation marks in a text, such as [1] or [1, 2]."""

from collections.abc import Iterator

import regex

from conspectus.deferred import dataclass
from conspectus.text.late_patterns import regex_pattern

_OPEN, _CLOSE = r"\[\uFF3B\u3010\u3014\u2772\u27E6", r"\]\uFF3D\u3011\u3015\u2773\u27E7"
_NUMBER = r"\p{Nd}{1,3}"
_TO = r"[-\u2010-\u2015~\uFF0D\uFF5E]"
_LISTED = rf"{_NUMBER}(?:\s?(?:[,;\uFF0C\u3001]|{_TO})\s?{_NUMBER})*"
_MARK = regex_pattern(rf"[{_OPEN}]\s?({_LISTED})\s?(?:\u2020[^{_CLOSE}\n]{{0,40}})?[{_CLOSE}]")
_ANY = regex_pattern(rf"[{_OPEN}]")
_SPAN = regex_pattern(rf"({_NUMBER})(?:\s?{_TO}\s?({_NUMBER}))?")
_CODE_BEFORE = regex_pattern(r"""(?:[={]\s?|["']\s?:\s?|\w\(|[\[\]\\!^`])\Z""")
_NAME_BEFORE = regex_pattern(r"(?:[\w$]*[\d_$][\w$]*|(?<![\w$])[A-Za-z]{1,2})\Z")
_GLUED = regex_pattern(r"[\w$)\"']\Z")
_CLAUSE_END = regex_pattern(rf"\Z|\s(?!\s*[-=<>*/+%&|])|[{_OPEN}]|[.,:!?\"'*](?!\w)|[^\x00-\x7F]")
_CODE_NEAR = regex_pattern(
    r"[=;{}_]|\w[.(]\w|\(\)|[\w)]\[(?![1-9])|^\s*(?:return|yield|assert|print|del|raise)\b"
)
_NOT_AFTER = regex_pattern(r"[A-Za-z0-9_(]")
_LOOK_BACK = 40


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark at characters [start, end) with inclusive spans of numbers."""

    start: int
    end: int
    spans: tuple[tuple[int, int], ...]


def marks(text: str) -> Iterator[Mark]:
    """Yield every citation mark, in order.

    Not marks are: code (`a[1]`, `x = [1, 2]`, `f([1])`), links (`[1](…)`), definitions (`[1]: …` at the start
    of a line), intervals that begin at 0, numbers of more than three digits, and reversed ranges. A mark
    directly after a word counts if a clause may end after it.
    """
    end, counted = -1, False
    if not _ANY.search(text):
        return
    for match in _MARK.finditer(text):
        chained = match.start() == end
        counted = (counted if chained else _follows_prose(text, match)) and _stands_free(text, match)
        end = match.end()
        spans = tuple(_read_spans(match[1])) if counted else ()
        if spans and all(1 <= first <= last for first, last in spans):
            yield Mark(match.start(), end, spans)


def _follows_prose(text: str, match: regex.Match[str]) -> bool:
    before = text[max(match.start() - _LOOK_BACK, 0) : match.start()]
    if _CODE_BEFORE.search(before) or _NAME_BEFORE.search(before):
        return False
    if not _GLUED.search(before):
        return True
    line = before[before.rfind("\n") + 1 :]
    return _CLAUSE_END.match(text, match.end()) is not None and not _CODE_NEAR.search(line)


def _stands_free(text: str, match: regex.Match[str]) -> bool:
    if _NOT_AFTER.match(text, match.end()):
        return False
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    return line != ".." and not (text.startswith(":", match.end()) and not line)


def _read_spans(listed: str) -> Iterator[tuple[int, int]]:
    for span in _SPAN.finditer(listed):
        yield int(span[1]), int(span[2] or span[1])

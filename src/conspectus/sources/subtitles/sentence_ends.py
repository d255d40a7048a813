"""Where sentences end, and where the turn of another speaker begins."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

from conspectus.deferred import dataclass

End = Literal["none", "open", "closed"]
"""How a piece of text ends: within a sentence, at a terminator that may be an abbreviation, or for good."""

_CLOSERS = "\"'\u201d\u2019\u00bb\u203a)\\]\u3011\u300d\u300f\uff09\u300b\u3009♪"
_MARKS = "\u2026.!?\u203d\u061f\u06d4\u0964\u0965\u1362\u0589။\u17d6"
_WIDE = "\u3002\uff01\uff1f\uff61\ufe12"
_END = re.compile(
    rf"(?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+(?=\s|$)"
    rf"|(?<=[!?])[{_CLOSERS}]*+(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
    rf"|(?<![{_WIDE}])[{_WIDE}]++(?:[{_CLOSERS}]++(?=\s|$)|(?![{_CLOSERS}]))"
)
_BEFORE_NAMES = (
    r"mrs?|ms|mme|mlle|dr|prof|st|vs|cf|sen|gov|gen|col|lt|capt|rev|hon|e\.g|i\.e"
    r"|bzw|z\.b|d\.h|ca|sra?|srta|ing|lic"
)
_BEFORE_NUMBERS = r"no|nr|fig|figs|eq|vol|pp?|ch|sec|approx|ст|гл|рис"
_BEFORE = r"(?:^|[\s(\[\"'\u201c\u2018\u00ab])"
_NAMING = re.compile(rf"{_BEFORE}(?:{_BEFORE_NAMES})\.$", re.IGNORECASE)
_NUMBERING = re.compile(rf"{_BEFORE}(?:{_BEFORE_NUMBERS})\.$", re.IGNORECASE)
_INITIAL = re.compile(r"(?:^|[A-ZÀ-ÖØ-Þ][\w.\u2019'-]*\s)[A-HJ-ZÀ-ÖØ-Þ]\.$")
_GOES_ON = re.compile(r"[\s\"'\u201c\u2018\u00ab(\[\u00bf\u00a1-]*+([^\W\d_])")
_LABEL = r"[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ0-9 .'&-]{1,29}:(?=\s|$)"
_SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\)|\u3010[^\u3010\u3011]*\u3011|♪[^♪]*♪)\s*")
_SPEAKS = re.compile(
    rf"\s*(?:>>+|{_LABEL}|[-\u2010\u2013\u2014]\s*(?=[^\W\d_]|[\u00bf\u00a1\"\u201c\u00ab]))"
)
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)
_LOOK_BACK = 24
_SAMPLE: Final = 200_000


@dataclass(frozen=True, slots=True)
class Script:
    """The writing of a text: whether it has letter case, and whether it has punctuation."""

    cased: bool
    marked: bool

    @classmethod
    def of(cls, text: str) -> "Script":
        """Detect the writing at the start of a text: 1 capital in 200 letters, 1 mark in 400 characters."""
        sample = text[:_SAMPLE]
        capitals = sum(map(str.isupper, sample))
        small = sum(map(str.islower, sample))
        marks = sum(map(sample.count, _MARKS + _WIDE))
        return cls(capitals * 200 >= capitals + small, marks * 400 >= len(sample))


def pieces(text: str, script: Script) -> Iterator[tuple[str, End]]:
    """Return the text split after each sentence, without white space between; the last may be incomplete."""
    if is_sound(text):
        yield text, "closed"
        return
    begin = 0
    for match in _END.finditer(text):
        end = match.end()
        if end == begin or _is_short(text, end):
            continue
        if not match[0] or match[0][0] in _WIDE:
            yield text[begin:end].strip(), "closed"
        elif end == len(text):
            yield text[begin:].strip(), "open"
            return
        elif not continues_sentence(text[end : end + _LOOK_BACK], script):
            yield text[begin:end].strip(), "closed"
        else:
            continue
        begin = end
    if rest := text[begin:].strip():
        yield rest, "none"


def continues_sentence(text: str, script: Script) -> bool:
    """Return whether a text begins with a lower-case letter and may continue a sentence."""
    match = _GOES_ON.match(text)
    return script.cased and match is not None and match[1].islower()


def turns(text: str, script: Script) -> Iterator[tuple[str, bool]]:
    """The joined lines of a caption, without those of another speaker:

    then the second value is true. A line in brackets is separate, as it is not speech.
    """
    joined: list[str] = []
    other = False
    for line in text.split("\n"):
        alone = is_sound(line)
        if alone or (joined and is_sound(joined[-1])) or _begins_turn(line, script):
            yield flat(joined), other
            joined, other = [], alone or _begins_turn(line, script)
        joined.append(line)
    yield flat(joined), other


def is_sound(text: str) -> bool:
    """Return whether a line is a sound description: entirely in brackets, or between notes."""
    return _SOUND.fullmatch(text) is not None


def _begins_turn(line: str, script: Script) -> bool:
    begins = _SPEAKS.match(line)
    if begins is None:
        return False
    return begins[0].rstrip()[-1:] in {">", ":"} or not continues_sentence(line[begins.end() :], script)


def flat(lines: list[str]) -> str:
    """Return the lines joined, with white space collapsed."""
    parts = [part for line in lines if (part := " ".join(line.split()))]
    if not parts:
        return ""
    joined = [parts[0]]
    for before, part in pairwise(parts):
        joined.append(space_between(before, part))
        joined.append(part)
    return "".join(joined)


def space_between(before: str, after: str) -> str:
    """Return a space, or nothing between two scripts that are written without spaces."""
    if not before or not after or (_NO_SPACES.match(before[-1]) and _NO_SPACES.match(after[0])):
        return ""
    return " "


def _is_short(text: str, end: int) -> bool:
    """Return whether the full stop at that position belongs to an abbreviation or an initial."""
    before = text[max(0, end - _LOOK_BACK) : end]
    if not before.endswith("."):
        return False
    if text[end : end + 2].lstrip()[:1].isdigit() and _NUMBERING.search(before):
        return True
    return bool(_NAMING.search(before) or _INITIAL.search(before))

"""Names of who and what is seen: which are the same, and whether a text says one."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

import regex

LETTER: Final = regex.compile(r"\w")
DENSE: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
"""Scripts written without spaces, in which nothing shows where a word ends."""


def folded(name: str) -> str:
    """What all spellings of a name have in common that differ in capitals, spaces or composition alone."""
    composed = unicodedata.normalize("NFC", " ".join(name.split())).casefold()
    return unicodedata.normalize("NFC", composed)


def common_names(counts: Mapping[str, int]) -> dict[str, int]:
    """Names with how often they are given, the most first, each in its most frequent spelling."""
    totals: dict[str, int] = {}
    spellings: dict[str, str] = {}
    for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        same = folded(name)
        if same:
            spellings.setdefault(same, name)
            totals[same] = totals.get(same, 0) + count
    ordered = sorted(totals, key=lambda same: (-totals[same], spellings[same]))
    return {spellings[same]: totals[same] for same in ordered}


def says(name: str) -> Callable[[str], bool]:
    """A test of texts: whether they hold the name as whole words."""
    wanted = folded(name)
    pattern = r"\s+".join(regex.escape(word) for word in wanted.split(" "))
    before = r"(?<!\w)" if _is_bounded(wanted[:1]) else ""
    after = r"(?!\w)" if _is_bounded(wanted[-1:]) else ""
    found = regex.compile(f"{before}{pattern}{after}")
    return lambda text: bool(wanted) and found.search(folded(text)) is not None


def _is_bounded(character: str) -> bool:
    return LETTER.match(character) is not None and DENSE.match(character) is None

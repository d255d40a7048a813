"""Spellings of names in events, and their counts."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

import regex

WORD_CHARACTER: Final = regex.compile(r"\w")
UNSPACED_SCRIPT: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
"""Scripts written without spaces, in which word boundaries are not visible."""


def fold_name(name: str) -> str:
    """Normalize spellings that differ only in case, spaces or Unicode composition."""
    composed = unicodedata.normalize("NFC", " ".join(name.split())).casefold()
    return unicodedata.normalize("NFC", composed)


def common_names(counts: Mapping[str, int]) -> dict[str, int]:
    """Return names with counts, most frequent first, each in its most frequent spelling."""
    totals: dict[str, int] = {}
    spellings: dict[str, str] = {}
    for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        folded = fold_name(name)
        if folded:
            spellings.setdefault(folded, name)
            totals[folded] = totals.get(folded, 0) + count
    ordered = sorted(totals, key=lambda folded: (-totals[folded], spellings[folded]))
    return {spellings[folded]: totals[folded] for folded in ordered}


def contains_name(name: str) -> Callable[[str], bool]:
    """Return a predicate of texts: whether they contain the name as whole words."""
    folded_name = fold_name(name)
    pattern = r"\s+".join(regex.escape(word) for word in folded_name.split(" "))
    before = r"(?<!\w)" if _is_bounded(folded_name[:1]) else ""
    after = r"(?!\w)" if _is_bounded(folded_name[-1:]) else ""
    bounded_pattern = regex.compile(f"{before}{pattern}{after}")
    return lambda text: bool(folded_name) and bounded_pattern.search(fold_name(text)) is not None


def _is_bounded(character: str) -> bool:
    return WORD_CHARACTER.match(character) is not None and UNSPACED_SCRIPT.match(character) is None

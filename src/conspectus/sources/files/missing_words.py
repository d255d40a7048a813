"""How many words that a file shows are not in the text that its reader returned."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from conspectus.sources.files.extract import left_out_notice

MAX_NAMED_KINDS = 3
_WORD = re.compile(r"\w+")


class ShownText(NamedTuple):
    """A text that a file shows, and what it belongs to, such as `comments`."""

    kind: str
    text: str


def missing_words_notice(text: str, shown_texts: Iterable[ShownText]) -> str | None:
    """Return a notice of the words that a file shows and that are not in its text, from a share of 2 % on.

    Each word of the text stands for one that is shown. The texts of a kind that are alike count once, as the
    header of several sections does; those of no kind count as often as they are shown.
    """
    by_kind: dict[str, list[str]] = {}
    for (kind, text_part), _ in dict.fromkeys(_number_main_texts(shown_texts)):
        by_kind.setdefault(kind, []).append(text_part)
    available = Counter(_WORD.findall(text))
    missing: Counter[str] = Counter()
    words = 0
    for kind in sorted(by_kind, key=bool):
        counts = Counter(_WORD.findall("\n".join(by_kind[kind])))
        words += counts.total()
        missing[kind or "parts of the text"] = (counts - available).total()
        available.subtract(counts & available)
    kinds = [kind for kind, count in missing.most_common(MAX_NAMED_KINDS) if count]
    return left_out_notice(words, missing.total(), ", ".join(kinds))


def join_notices(*notices: str | None) -> str | None:
    """Return the notices of a file as one; None if there is none."""
    return "; ".join(filter(None, notices)) or None


def _number_main_texts(shown_texts: Iterable[ShownText]) -> Iterator[tuple[ShownText, int]]:
    """Yield the texts with a number that keeps those of no kind apart."""
    for number, shown_text in enumerate(shown_texts, 1):
        yield shown_text, 0 if shown_text.kind else number

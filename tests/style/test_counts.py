"""Sentences that count take number and noun from `format_count`, so that none says "1 streams"."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.style.sources import MODULES, name_of, nodes, read

COUNTED = re.compile(r" (?:more |new |other )?(\w+s)\b")
VERBS = frozenset(
    {
        "as",
        "begins",
        "logs",
        "is",
        "has",
        "was",
        "needs",
        "names",
        "holds",
        "says",
        "starts",
        "takes",
        "makes",
        "does",
    }
)
READ_BY_PEOPLE = (
    "cli/",
    "mcp/",
    "window/",
    "ingest/messages.py",
    "engine/channels.py",
    "engine/search.py",
    "engine/searcher.py",
)


def counts_by_hand(source: str) -> Iterator[str]:
    """Yield the plurals that follow a variable in texts, but for limits, which are constants or bounds."""
    for text in nodes(source):
        parts = text.values if isinstance(text, ast.JoinedStr) else ()
        for number, following in pairwise(parts):
            if not isinstance(number, ast.FormattedValue) or not isinstance(following, ast.Constant):
                continue
            words = COUNTED.match(str(following.value))
            if words and words[1] not in VERBS and not is_limit(ast.unparse(number.value)):
                yield f"{ast.unparse(number)} {words[1]}"


def is_limit(expression: str) -> bool:
    return expression.isupper() or "max" in expression or "limit" in expression


def test_no_text_counts_by_hand() -> None:
    offences = [
        f"{name_of(path)}: {offence}"
        for path in MODULES
        if name_of(path).startswith(READ_BY_PEOPLE)
        for offence in counts_by_hand(read(path))
    ]
    assert offences == []


@pytest.mark.parametrize("text", ['f"{n} streams"', 'f"{len(x):,} more chunks are"', 'f"all {a.b} tasks"'])
def test_a_planted_count_is_caught(text: str) -> None:
    assert list(counts_by_hand(text))


@pytest.mark.parametrize(
    "text", ['f"{name} is"', 'f"{MAX_NAMES} names"', 'f"{settings.max_limit} hits"', '"3 cats"']
)
def test_names_and_limits_are_no_counts(text: str) -> None:
    assert not list(counts_by_hand(text))

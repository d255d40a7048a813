"""Words, words in order and cells of a file's text, beside the Markdown that it should become.

Cells are compared by their words. Three forms that say the same to a person count alike, whoever wrote them:

- A picture's description is its words, with or without a mark before it: `![alt](a.png)`, `[Image: alt]`.
- A table of one cell is a line of text: it has no columns, and its words count as words.
- A name over several columns may be a row of its own above theirs, or before each of them: `2024 / Q1`. Words
  are counted in the first form.
"""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

EXPECTED = ("{name}.md", "../groundtruth/{name}.md", "../groundtruth/{stem}.md", "expected_outputs/{stem}.md")
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ADDRESS = re.compile(r"\]\([^()\s]*\)")
_ESCAPE = re.compile(r"\\(?=[^\w\s]|_)")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:-]*")
_IMAGE = re.compile(r"\[Image: ([^\[\]]*)\]")
_HEADER_SEPARATOR = " / "


@dataclass(frozen=True, slots=True)
class Pair:
    """A file, and the Markdown that it should become."""

    kind: str
    path: Path
    expected: str


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of the expected words, words in order, cells and cells in order, from 0 to 1.

    The shares of cells are None where none are expected. `false_tables` are the tables that are read where
    none is expected.
    """

    words: float
    order: float
    cells: float | None
    cells_in_order: float | None
    false_tables: int


def pairs_in(directory: Path) -> Iterator[Pair]:
    """Yield the files of a folder that have their Markdown beside them."""
    for path in sorted(directory.rglob("*")):
        names = {"name": path.name, "stem": path.stem}
        expected = [path.parent / pattern.format(**names) for pattern in EXPECTED]
        if path.is_file() and path.parent.name not in {"groundtruth", "expected_outputs"}:
            markdown = next((candidate for candidate in expected if _is_pair(path, candidate)), None)
            if markdown is not None:
                yield Pair(path.suffix[1:].lower(), path, markdown.read_text(encoding="utf-8"))


def _is_pair(path: Path, expected: Path) -> bool:
    """Return whether the Markdown is that of the file: one without the file's suffix is that of a PDF."""
    return expected != path and expected.is_file() and (path.name in expected.name or path.suffix == ".pdf")


def words_of(text: str) -> list[str]:
    """Return the words of a text; comments, Markdown's escapes and the addresses of links are no words."""
    bare = _ADDRESS.sub("]", _COMMENT.sub("", html.unescape(text)))
    return _WORD.findall(_ESCAPE.sub("", _IMAGE.sub(r"\1", bare)).lower().replace("_", " "))


def tables_of(text: str) -> list[list[list[str]]]:
    """Return the Markdown tables of a text with more than one cell, as rows of cells."""
    tables: list[list[list[str]]] = [[]]
    for line in map(str.strip, _COMMENT.sub("", text).split("\n")):
        if not line.startswith("|"):
            tables.append([])
        elif not _RULE.fullmatch(line):
            tables[-1].append(_PIPE.split(line)[1:-1])
    return [table for table in tables if sum(map(len, table)) > 1]


def cells_of(text: str) -> list[str]:
    """Return the cells of all Markdown tables of a text, row by row, as their words."""
    rows = (row for table in tables_of(text) for row in table)
    cells = (" ".join(words_of(cell)) for row in rows for cell in row)
    return [cell for cell in cells if cell]


def with_name_rows(text: str) -> str:
    """Return a text whose tables have names over several columns in rows of their own."""
    lines: list[str] = []
    is_in_table = False
    for line in text.split("\n"):
        begins_table = line.lstrip().startswith("|") and not is_in_table
        is_in_table = line.lstrip().startswith("|")
        rows = _split_names(_PIPE.split(line.strip())[1:-1]) if begins_table else []
        lines += [f"| {' | '.join(row)} |" for row in rows] if len(rows) > 1 else [line]
    return "\n".join(lines)


def _split_names(names: Sequence[str]) -> list[list[str]]:
    """Return a header row as rows, if names over several columns stand before those of each column."""
    parts = [name.strip().split(_HEADER_SEPARATOR) for name in names]
    is_joined = any(left[0] == right[0] and min(len(left), len(right)) > 1 for left, right in pairwise(parts))
    if not is_joined:
        return [list(names)]
    return [[name[min(row, len(name) - 1)] for name in parts] for row in range(max(map(len, parts)))]


def recall(expected: Sequence[str], texts: Sequence[str]) -> float:
    """Return the share of the expected words, each as often as it is expected; 1 for no words."""
    counts = Counter(expected)
    return (counts & Counter(texts)).total() / counts.total() if counts else 1.0


def recall_in_order(expected: Sequence[str], texts: Sequence[str]) -> float:
    """Return the length of the longest common subsequence as a share of the expected words."""
    positions: dict[str, int] = defaultdict(int)
    for index, word in enumerate(expected):
        positions[word] |= 1 << index
    full = (1 << len(expected)) - 1
    row = full
    for word in texts:
        matching = row & positions.get(word, 0)
        row = ((row + matching) | (row - matching)) & full
    return (len(expected) - row.bit_count()) / len(expected) if expected else 1.0


def score(expected_markdown: str, markdown: str) -> Score:
    """Return how much of the expected Markdown is in a text."""
    expected, text = with_name_rows(expected_markdown), with_name_rows(markdown)
    expected_words, words = words_of(expected), words_of(text)
    expected_cells, cells = cells_of(expected), cells_of(text)
    return Score(
        recall(expected_words, words),
        recall_in_order(expected_words, words),
        recall(expected_cells, cells) if expected_cells else None,
        recall_in_order(expected_cells, cells) if expected_cells else None,
        0 if expected_cells else len(tables_of(text)),
    )

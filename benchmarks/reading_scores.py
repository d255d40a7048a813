"""Words, words in order and cells of a file's text, beside the Markdown that it should become."""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

EXPECTED = ("{name}.md", "../groundtruth/{name}.md", "../groundtruth/{stem}.md", "expected_outputs/{stem}.md")
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ADDRESS = re.compile(r"\]\([^()\s]*\)")
_ESCAPE = re.compile(r"\\(?=[^\w\s]|_)")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:-]*")


@dataclass(frozen=True, slots=True)
class Pair:
    """A file, and the Markdown that it should become."""

    kind: str
    path: Path
    expected: str


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of the expected words, words in order and cells, from 0 to 1; None without cells."""

    words: float
    order: float
    cells: float | None


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
    return _WORD.findall(_ESCAPE.sub("", bare).lower().replace("_", " "))


def cells_of(text: str) -> list[str]:
    """Return the cells of all Markdown tables of a text, row by row, as their words."""
    rows = (line.strip() for line in text.split("\n"))
    tables = (row for row in rows if row.startswith("|") and not _RULE.fullmatch(row))
    cells = (" ".join(words_of(cell)) for row in tables for cell in _PIPE.split(row)[1:-1])
    return [cell for cell in cells if cell]


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


def score(expected: str, text: str) -> Score:
    """Return how much of the expected Markdown is in a text."""
    expected_words, words = words_of(expected), words_of(text)
    expected_cells = cells_of(expected)
    cells = recall_in_order(expected_cells, cells_of(text)) if expected_cells else None
    return Score(recall(expected_words, words), recall_in_order(expected_words, words), cells)

"""Exact token counts of renderings, composed from counts of their parts and chunks."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.model.records import Chunk
from conspectus.window.checkpoints import Checkpoint
from conspectus.window.render import Rendered, Renderer

CHUNKS_COUNTED_WITH: Final = "o200k_base"

DIVISIBLE: Final = frozenset({"o200k_base", "cl100k_base"})
BORDER: Final = re.compile(
    r"(?<=[A-Za-z0-9])(?=[!-&(-/:-@\[-`{-~]| [!-~])"  # word, then a sign, or a space and a visible character
    r"|(?<=\n)(?=[ \t]*[!-.0-~])"  # the start of a non-empty line
)
"""Positions where these encodings always start a token: none of their patterns matches across them."""
_LAST_BORDER: Final = re.compile(f"(?s:.*)(?:{BORDER.pattern})")
_TAIL_LENGTH: Final = 40
MAX_UNCHECKED_LENGTH: Final = 5_000
"""Characters that are counted without a checkpoint, if there is a border after them."""
Count: TypeAlias = Callable[[str], int]


def count_in_parts(count: Count, tokenizer: str, checkpoint: Checkpoint) -> Count:
    """Return the same counter with a checkpoint before each call, and between the parts of a long text."""

    def tokens(text: str) -> int:
        checkpoint()
        if len(text) <= MAX_UNCHECKED_LENGTH or tokenizer not in DIVISIBLE:
            return count(text)
        total, start = 0, 0
        while border := BORDER.search(text, start + MAX_UNCHECKED_LENGTH):
            total += count(text[start : border.start()])
            start = border.start()
            checkpoint()
        return total + count(text[start:])

    return tokens


@dataclass(frozen=True, slots=True)
class Part:
    """The rendering of a group, and the chunks that it shows in whole or in part."""

    text: str
    chunks: tuple[Chunk, ...]


class RenderingCounter:
    """Counts the renderings of one window. Each group is counted once; chunks with a stored count never.

    For tokenizers other than o200k_base and cl100k_base, and for formats whose groups do not start a line,
    the whole rendering is counted.
    """

    def __init__(self, renderer: Renderer, count: Count, tokenizer: str) -> None:
        self.renderer = renderer
        self.count = count
        self.divisible = tokenizer in DIVISIBLE and renderer.between.endswith("\n")
        self.counted = tokenizer == CHUNKS_COUNTED_WITH
        self._parts: dict[tuple[str, str], int] = {}

    def tokens(self, rendered: Rendered, groups: Sequence[Part]) -> int:
        """Return the tokens of the rendered groups."""
        if not self.divisible or not groups:
            return rendered.tokens(self.count)
        ends = (*[self.renderer.between] * (len(groups) - 1), self.renderer.after)
        text = self.count(self.renderer.before) + sum(map(self._count_part, groups, ends))
        return rendered.tokens(lambda part: text if part == rendered.text else self.count(part))

    def _count_part(self, group: Part, end: str) -> int:
        key = (group.text, end)
        if key not in self._parts:
            chunk = group.chunks[0] if self.counted and len(group.chunks) == 1 else None
            text = group.text + end
            self._parts[key] = self.count(text) if chunk is None else self._count_around(text, chunk)
        return self._parts[key]

    def _count_around(self, text: str, chunk: Chunk) -> int:
        """Return the tokens of a text. Only the borders of chunks with known counts are counted."""
        inside = chunk.text.rstrip()
        at, tail = text.find(inside), len(inside) - _TAIL_LENGTH
        first = BORDER.search(text, at) if at >= 0 and tail >= _TAIL_LENGTH else None
        last = _LAST_BORDER.match(inside, tail) if first else None
        if first is None or last is None or last.end() < first.start() - at:
            return self.count(text)
        begin, end = first.start() - at, last.end()
        tokens = chunk.tokens - self.count(chunk.text[end:]) + self.count(text[at + end :])
        return tokens + self.count(text[: at + begin]) - (self.count(chunk.text[:begin]) if begin else 0)

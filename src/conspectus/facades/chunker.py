"""The text splitter in the format of a knowledge base."""

from collections.abc import Sequence
from typing import Final

from conspectus.deferred import dataclass
from conspectus.text.splitter import SplitOptions, split
from conspectus.text.tokens import ESTIMATORS

OVERLAP: Final = 200


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a text; `token_count` is an estimate: four bytes a token, at least one."""

    content: str
    position: int
    token_count: int


class Chunker:
    """The splitter of documents, for callers that split texts themselves."""

    @staticmethod
    def split(
        text: str | None,
        *,
        chunk_size: int = 2000,
        overlap: int | None = None,
        separators: Sequence[str] = ("\n\n", "\n", ". ", " "),
    ) -> list[TextPiece]:
        """Split a text into pieces of at most `chunk_size` characters that overlap by at most `overlap`.

        The default overlap is 200, or half of `chunk_size` if that is less. Separators stay at the ends of
        pieces, so that the pieces cover the text. A blank text has no pieces. Raises InvalidInput for numbers
        out of range.
        """
        if text is None or not text.strip():
            return []
        repeated = max(0, min(OVERLAP, chunk_size // 2)) if overlap is None else overlap
        options = SplitOptions(size=chunk_size, overlap=repeated, separators=tuple(separators))
        count = ESTIMATORS["bytes4_min1"]
        return [TextPiece(piece.text, piece.position, count(piece.text)) for piece in split(text, options)]

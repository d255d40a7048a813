"""Token counters by name: byte-pair encodings, any Hugging Face tokenizer, and estimators."""

import re
import zlib
from collections.abc import Callable
from functools import cache, partial
from heapq import heapify, heappop, heappush
from importlib import import_module, resources
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final, TypeAlias

import regex
from tokenizers import Tokenizer

from conspectus.errors import InvalidInput, UnknownTokenizer
from conspectus.ports import CountTokens
from conspectus.text.tokens import ESTIMATORS

ENCODINGS = ("o200k_base", "cl100k_base")
_FILE_PREFIX = "hf:"
Pieces: TypeAlias = Callable[[str], list[str]]

_SUFFIX: Final = r"(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))"
_ANY_SUFFIX: Final = r"(?i:'(?:s|t|m|d|re|ve|ll))"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPACE, _ASCII_SPACE = r"\p{White_Space}", r"\t-\r "


def _o200k(before: str, upper: str, lower: str, suffix: str, number: str, space: str) -> str:
    others = before.replace(r"\r\n", space)
    return "|".join(
        (
            rf"{before}?{upper}*{lower}+{suffix}?",
            rf"{before}?{upper}+{lower}*{suffix}?",
            rf"{number}{{1,3}}",
            rf" ?{others}+[\r\n/]*",
            rf"[{space}]*[\r\n]+",
            rf"[{space}]+(?![^{space}])",
            rf"[{space}]+",
        )
    )


def _cl100k(before: str, letter: str, suffix: str, number: str, space: str) -> str:
    others = before.replace(r"\r\n", space)
    return "|".join(
        (
            suffix,
            rf"{before}?{letter}+",
            rf"{number}{{1,3}}",
            rf" ?{others}+[\r\n]*",
            rf"[{space}]+\Z",
            rf"[{space}]*[\r\n]",
            rf"[{space}]+(?![^{space}])",
            rf"[{space}]",
        )
    )


_OTHER, _ASCII_OTHER = r"[^\r\n\p{L}\p{N}]", r"[^\r\nA-Za-z0-9]"
PIECES: Final = {
    "o200k_base": (
        _o200k(_OTHER, _UPPER, _LOWER, _ANY_SUFFIX, r"\p{N}", _SPACE),
        _o200k(_ASCII_OTHER, "[A-Z]", "[a-z]", _SUFFIX, "[0-9]", _ASCII_SPACE),
    ),
    "cl100k_base": (
        _cl100k(_OTHER, r"\p{L}", _ANY_SUFFIX, r"\p{N}", _SPACE),
        _cl100k(_ASCII_OTHER, "[A-Za-z]", _SUFFIX, "[0-9]", _ASCII_SPACE),
    ),
}
"""How each encoding cuts a text into pieces, and the same for ASCII, which is four times as fast."""


def counter(name: str) -> CountTokens:
    """Return the token counter called `name`.

    `o200k_base` and `cl100k_base` are exact and include their vocabularies. `hf:/path/to/tokenizer.json`
    counts with that file, without special tokens and truncation. All others are in `text.tokens.ESTIMATORS`.
    Every counter takes any text: a lone surrogate counts as U+FFFD, and a surrogate pair as its character.

    Raises `UnknownTokenizer`, or `InvalidInput` if the file cannot be read.
    """
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    if name in ENCODINGS:
        return partial(_count, _encoding(name))
    if name.startswith(_FILE_PREFIX):
        return partial(_count, _file_counter(Path(name.removeprefix(_FILE_PREFIX))))
    raise UnknownTokenizer(name)


def _count(encodable: CountTokens, text: str) -> int:
    try:
        return encodable(text)
    except UnicodeEncodeError:
        return encodable(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


Ranks: TypeAlias = dict[bytes, int]

MAX_CACHED = 50_000
MAX_CACHED_LENGTH = 64
"""Characters of a piece that is worth remembering: words come again, other pieces hardly do."""


class BytePairs:
    """Counts the tokens of a byte-pair encoding: cuts a text into pieces and joins each from its bytes."""

    def __init__(self, ranks: Ranks, pieces: Pieces, ascii_pieces: Pieces) -> None:
        self._pieces = pieces
        self._ascii_pieces = ascii_pieces
        self._cache = _PieceCache(ranks)

    def __call__(self, text: str) -> int:
        """Tokens of a text. Raises UnicodeEncodeError for lone surrogates."""
        if text.isascii():
            pieces = self._ascii_pieces(text)
        else:
            text.encode("utf-8")
            pieces = self._pieces(text)
        return sum(map(self._cache.__getitem__, pieces))


class _PieceCache(dict[str, int]):
    """Tokens by piece; what is missing is counted, and kept if it is short."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self._ranks = ranks

    def __missing__(self, piece: str) -> int:
        data = piece.encode("utf-8")
        tokens = 1 if data in self._ranks else count_joined(data, self._ranks)
        if len(piece) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[piece] = tokens
        return tokens


def count_by_heap(piece: bytes, ranks: Ranks) -> int:
    """Tokens of the piece: the pair of the lowest rank is joined first, of equal ones the leftmost."""
    size = count = len(piece)
    following, before = list(range(1, size + 2)), list(range(-1, size))
    rank_at: list[int | None] = [ranks.get(piece[at : at + 2]) for at in range(size - 1)] + [None, None]
    heap = [(rank, at) for at, rank in enumerate(rank_at) if rank is not None]
    heapify(heap)
    while heap:
        rank, at = heappop(heap)
        if rank_at[at] != rank:
            continue
        middle = following[at]
        end = following[middle]
        following[at], before[end], rank_at[middle], count = end, at, None, count - 1
        for first in (at, before[at])[: 1 + (at > 0)]:
            second = following[first]
            pair_rank = ranks.get(piece[first : following[second]]) if second < size else None
            rank_at[first] = pair_rank
            if pair_rank is not None:
                heappush(heap, (pair_rank, first))
    return count


try:
    count_joined = import_module("conspectus.providers._byte_pairs").count
except ImportError:
    count_joined = count_by_heap


@cache
def _encoding(name: str) -> BytePairs:
    pieces, ascii_pieces = PIECES[name]
    return BytePairs(vocabulary(name), regex.compile(pieces).findall, re.compile(ascii_pieces).findall)


def vocabulary(name: str) -> Ranks:
    """The tokens of an encoding in the order of their ranks: their number, their lengths, and their bytes."""
    packed = (resources.files("conspectus.providers") / "byte_pairs" / f"{name}.zlib").read_bytes()
    data = memoryview(zlib.decompress(packed))
    count = int.from_bytes(data[:4], "big")
    tokens = bytes(data[4 + count :])
    ends = list(accumulate(data[4 : 4 + count], initial=0))
    return {tokens[start:end]: rank for rank, (start, end) in enumerate(pairwise(ends))}


def _file_counter(path: Path) -> CountTokens:
    try:
        description = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("tokenizer", f"cannot read {path}: {error}") from error
    tokenizer = _parse(path, description)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return partial(_count_with, tokenizer)


def _parse(path: Path, description: str) -> Tokenizer:
    # The library raises a plain Exception for any malformed file.
    try:
        return Tokenizer.from_str(description)
    except Exception as error:
        raise InvalidInput("tokenizer", f"{path} is not a tokenizer.json: {error}") from error


def _count_with(tokenizer: Tokenizer, text: str) -> int:
    text.encode("utf-8")
    return len(tokenizer.encode(text, add_special_tokens=False).ids)

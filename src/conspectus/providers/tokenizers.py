"""Token counters by name: byte-pair encodings, any Hugging Face tokenizer, and estimators."""

import re
from functools import cache, partial
from pathlib import Path
from typing import Final

import regex
from tokenizers import Tokenizer

from conspectus.errors import InvalidInput, UnknownTokenizer
from conspectus.ports import CountTokens
from conspectus.providers.byte_pair_encoding import BytePairs
from conspectus.providers.vocabulary import map_vocabulary
from conspectus.text.tokens import ESTIMATORS

ENCODINGS = ("o200k_base", "cl100k_base")
_FILE_PREFIX = "hf:"

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
        return partial(_count, _load_encoding(name))
    if name.startswith(_FILE_PREFIX):
        return partial(_count, _file_counter(Path(name.removeprefix(_FILE_PREFIX))))
    raise UnknownTokenizer(name)


def _count(encodable: CountTokens, text: str) -> int:
    try:
        return encodable(text)
    except UnicodeEncodeError:
        return encodable(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


@cache
def _load_encoding(name: str) -> BytePairs:
    pieces, ascii_pieces = PIECES[name]
    return BytePairs(map_vocabulary(name), regex.compile(pieces).findall, re.compile(ascii_pieces).findall)


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

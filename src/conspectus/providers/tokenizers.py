"""Token counters by name: exact byte-pair encodings, any Hugging Face tokenizer, and the named estimators."""

from functools import partial
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType

from tokenizers import Tokenizer

from conspectus.errors import InvalidInput, UnknownTokenizer
from conspectus.ports import CountTokens
from conspectus.text.tokens import ESTIMATORS

ENCODINGS = ("o200k_base", "cl100k_base")
_FILE_PREFIX = "hf:"


def counter(name: str) -> CountTokens:
    """The token counter called `name`.

    `o200k_base` and `cl100k_base` are exact and carry their vocabularies; `hf:/path/to/tokenizer.json` counts
    with that file, without special tokens and without its truncation; the rest is `text.tokens.ESTIMATORS`.
    Every counter takes any text: what has no encoding (a lone surrogate) counts as U+FFFD, and the two
    halves of a surrogate pair as the character they mean.

    Raises `UnknownTokenizer`, or `InvalidInput` where the file cannot be read.
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


def _encoding(name: str) -> CountTokens:
    count: CountTokens = _byte_pair_extension().tokenizer_for_encoding(name).count
    return count


def _byte_pair_extension() -> ModuleType:
    """The compiled half of bpe-openai; importing the whole reads every vocabulary into dicts (2 s, 50 MB)."""
    package = find_spec("bpe_openai")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("bpe_openai._bindings", places)
    if spec is None or spec.loader is None:
        raise ImportError("bpe-openai has no compiled part on this platform")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    # The library raises a plain Exception for any malformed file, so nothing narrower can be caught.
    try:
        return Tokenizer.from_str(description)
    except Exception as error:
        raise InvalidInput("tokenizer", f"{path} is not a tokenizer.json: {error}") from error


def _count_with(tokenizer: Tokenizer, text: str) -> int:
    text.encode("utf-8")
    return len(tokenizer.encode(text, add_special_tokens=False).ids)

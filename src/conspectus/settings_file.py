"""A file of settings: YAML of names and values, and nothing that YAML could do beyond that."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import yaml

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, TooLarge, UnreadableFile

MAX_BYTES: Final = 100_000
DEEPEST: Final = 8
SECTION: Final = "rag"
DATABASE: Final = "vector_db"
_TRUTH: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_RAG: Final = ("enabled", "max_context_tokens", DATABASE)
_VECTOR_DB: Final = ("enabled", "type", "host", "port", "uri", "token", "collection_name")
_NOTHING: Final = {"", "~", "null", "Null", "NULL"}
_FRAME: Final = (
    yaml.StreamStartEvent,
    yaml.StreamEndEvent,
    yaml.DocumentStartEvent,
    yaml.DocumentEndEvent,
)

Values = dict[str, "Values | str | None"]


@dataclass(frozen=True, slots=True)
class YamlPosition:
    """Where in the file something stands: its keys, outermost first."""

    file: str
    keys: tuple[str, ...] = ()

    def below(self, key: str) -> "YamlPosition":
        """The place of a key of the mapping that stands here."""
        return YamlPosition(self.file, (*self.keys, key))

    def error(self, reason: str) -> InvalidInput:
        """What is wrong here."""
        return InvalidInput(f"{self.file}: {'.'.join(self.keys)}", reason)


def read_settings(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The values in a file by the names of settings, as they are written.

    Each of the `known` names may stand at the top level; the section `rag` says in its own words how many
    tokens a context may have, and which Milvus to use.

    Raises UnreadableFile, TooLarge, or InvalidInput for a name that is not known and for a value of another
    kind.
    """
    here = YamlPosition(str(path))
    tree = _tree(path, _text(path))
    section = tree.pop(SECTION, None)
    _check_names(tree, (*names, SECTION), here)
    values = {name: _word(value, here.below(name)) for name, value in tree.items()}
    section_values = _rag(_mapping(section, here.below(SECTION)), here.below(SECTION))
    return {**section_values, **{name: value for name, value in values.items() if value is not None}}


def _rag(section: Values, here: YamlPosition) -> dict[str, str]:
    """The settings of the section, if it is not disabled."""
    _check_names(section, _RAG, here)
    tokens = _word(section.get("max_context_tokens"), here.below("max_context_tokens"))
    settings = {} if tokens is None else {"max_context_tokens": tokens}
    database = here.below(DATABASE)
    settings |= _milvus(_mapping(section.get(DATABASE), database), database)
    return settings if _truth(section, here, default=True) else {}


def _milvus(section: Values, here: YamlPosition) -> dict[str, str]:
    _check_names(section, _VECTOR_DB, here)
    words = {name: _word(section.get(name), here.below(name)) for name in _VECTOR_DB}
    if words["type"] not in {None, "milvus"}:
        raise here.below("type").error(f"{words['type']!r} is not milvus")
    port = words["port"] or "19530"
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 2**16):
        raise here.below("port").error(f"{port!r:.80} is not a port")
    if not _truth(section, here, default=False):
        return {}
    settings = {
        "index": "milvus",
        "milvus_uri": words["uri"] or f"http://{words['host'] or 'localhost'}:{port}",
    }
    settings |= {"milvus_token": words["token"]} if words["token"] else {}
    return settings | ({"default_collection": words["collection_name"]} if words["collection_name"] else {})


def _truth(section: Values, here: YamlPosition, *, default: bool) -> bool:
    word = _word(section.get("enabled"), here.below("enabled"))
    if word is None:
        return default
    if word.lower() not in _TRUTH:
        raise here.below("enabled").error(f"{word!r:.80} is neither true nor false")
    return _TRUTH[word.lower()]


def _mapping(value: "Values | str | None", here: YamlPosition) -> Values:
    if isinstance(value, str):
        raise here.error("must be a section of names and values")
    return value or {}


def _word(value: "Values | str | None", here: YamlPosition) -> str | None:
    if isinstance(value, dict):
        raise here.error("must be one value, not a section")
    return value


def _check_names(values: Mapping[str, object], names: tuple[str, ...], here: YamlPosition) -> None:
    for name in values:
        if name not in names:
            [nearest] = get_close_matches(name, names, n=1, cutoff=0.0)
            raise here.below(f"{name:.80}").error(f"is not known; did you mean {nearest}?")


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise UnreadableFile(str(path), "is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else None
        raise UnreadableFile(str(path), f"cannot be read as settings: {reason or fault}") from fault
    if len(data) > MAX_BYTES:
        raise TooLarge(f"the settings in {path}", size=len(data), limit=MAX_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise UnreadableFile(str(path), "is not UTF-8") from fault


def _tree(path: Path, text: str) -> Values:
    """Mappings of words to words. Lists, anchors, aliases and tags are refused: settings need none."""
    try:
        return _document(yaml.parse(text, Loader=yaml.SafeLoader), str(path))
    except (yaml.YAMLError, RecursionError) as fault:
        mark = getattr(fault, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = getattr(fault, "problem", None) or "is not YAML"
        raise UnreadableFile(str(path), f"is not YAML{where}: {reason}") from fault


def _document(events: Iterator[yaml.Event], file: str) -> Values:
    """What the only document of a stream holds."""
    document: Values | None = None
    for event in events:
        if document is None and isinstance(event, yaml.MappingStartEvent):
            document = _values(events, _plain(event, file), YamlPosition(file), DEEPEST)
        elif document is None and isinstance(event, yaml.ScalarEvent) and event.value in _NOTHING:
            document = {}
        elif not isinstance(event, _FRAME):
            raise UnreadableFile(file, "must be a mapping with unique names")
    return document or {}


def _values(events: Iterator[yaml.Event], event: yaml.Event, here: YamlPosition, depth: int) -> Values:
    if depth == 0:
        raise here.error("is nested too deeply")
    values: Values = {}
    while not isinstance(event := _plain(next(events), here.file), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise here.error("has a name that is not plain text")
        name = event.value
        if name in values:
            raise here.below(f"{name:.80}").error("is given twice")
        value = _plain(next(events), here.file)
        if isinstance(value, yaml.MappingStartEvent):
            values[name] = _values(events, value, here.below(f"{name:.80}"), depth - 1)
        elif isinstance(value, yaml.ScalarEvent):
            values[name] = None if value.implicit[0] and value.value in _NOTHING else value.value
        else:
            raise here.below(f"{name:.80}").error("is a list; it must be one value")
    return values


def _plain(event: yaml.Event, file: str) -> yaml.Event:
    """The event, if there is nothing to it but what is written."""
    line = event.start_mark.line + 1 if event.start_mark else 0
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise UnreadableFile(file, f"has an anchor or an alias in line {line}; write the value out")
    if getattr(event, "tag", None) is not None:
        raise UnreadableFile(file, f"has a tag in line {line}; values are plain text and numbers")
    return event

"""The fields of new documents: checked, cleaned and fingerprinted."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from conspectus.deferred import dataclass
from conspectus.errors import (
    InvalidInput,
    TooLarge,
    as_field,
)
from conspectus.ingest.sensitive import Screen, screen_of
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import (
    Document,
    Json,
    Metadata,
    Period,
    Source,
)
from conspectus.model.trust import Origin
from conspectus.ports import CountTokens
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, content_hash, require_fitting, stable_id
from conspectus.text.times import canonical, parse_instant


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything that preparing a document depends on, except the document."""

    source: Source
    settings: Settings
    count: CountTokens
    now: datetime
    reviewed: bool = False
    """Whether a manager releases the text: attack patterns are not looked for."""
    origin: Origin | None = None
    """The origin that the key of the writer allows."""
    analyse: Callable[[str], object] | None = None
    """Analyzes a passage as the index of the collection does; None where nothing is written."""

    @property
    def screen(self) -> Screen | None:
        """What happens to secrets and personal data in the collection."""
        return screen_of(self.settings.sensitive, self.source.collection)


def message_id(source: SourceId, key: str) -> DocumentId:
    """The id that the message of a key has in its channel."""
    return DocumentId(stable_id("document", source, clean(key)))


def check_name(kind: str, name: str) -> str:
    """The name of a collection or a source, if it can be one. Raises InvalidInput."""
    if not name.strip():
        raise InvalidInput(kind, "is empty; give a name with visible characters")
    if clean(name) != name:
        raise InvalidInput(kind, "has a NUL character or a lone surrogate, which cannot be stored")
    return require_fitting(kind, name, NAME_BYTES)


def fingerprint_of(document: Document, beside: Sequence[object], by: Preparation) -> str:
    """A hash of every field that a caller gives, of how the text is split, and of a given vector."""
    parts: list[object] = [document.content_hash, document.title, document.kind, document.author]
    parts += [document.role, document.sequence, document.parent, document.thread, document.syntax]
    parts += [document.metadata, by.settings.chunk_size, by.settings.chunk_overlap]
    if document.occurred is not None:
        parts += [canonical(document.occurred.start), canonical(document.occurred.end)]
    if (document.origin, document.trust) != ("user", "trusted"):
        parts += [document.origin, document.trust]
    if document.read_by != "text":
        parts.append(document.read_by)
    parts += [part.hex() if isinstance(part, bytes) else repr(part) for part in beside if part]
    return content_hash(json.dumps(parts, sort_keys=True))


def period(value: datetime | Period | str | float | None, *, field: str = "occurred") -> Period | None:
    """The event time a caller gave, with zones; an instant is a period without length."""
    if value is None:
        return None
    with as_field(field, was="time"):
        if not isinstance(value, Period):
            instant = parse_instant(value)
            return Period(instant, instant)
        start, end = parse_instant(value.start), parse_instant(value.end)
    if end < start:
        raise InvalidInput(field, "ends before it starts")
    return Period(start, end)


def storable(metadata: Mapping[str, object], settings: Settings) -> Metadata:
    """Metadata as plain JSON with instants as canonical strings. Raises InvalidInput or TooLarge."""
    if not metadata:
        return {}
    _require_few_values(metadata, settings.max_metadata_bytes, settings.max_metadata_depth)
    result = {_name(key): _json(value, settings.max_metadata_depth) for key, value in metadata.items()}
    size = len(json.dumps(result, ensure_ascii=False).encode())
    if size > settings.max_metadata_bytes:
        raise TooLarge("metadata", size=size, limit=settings.max_metadata_bytes)
    return result


def _require_few_values(metadata: Mapping[str, object], limit: int, max_depth: int) -> None:
    """Check, before anything is converted, that the values fit so many bytes of JSON.

    Raises TooLarge, or InvalidInput for metadata that are nested too deeply or contain themselves.
    """
    containers: list[tuple[Mapping[Any, object] | Sequence[object], int]] = [(metadata, max_depth)]
    count = 0
    while containers:
        container, depth = containers.pop()
        inner = list(container.values()) if isinstance(container, Mapping) else container
        count += len(inner)
        if count > limit:
            raise TooLarge("metadata", size=count, limit=limit)
        if inner and depth <= 0:
            raise _too_deep()
        containers += [(value, depth - 1) for value in inner if isinstance(value, Mapping | list | tuple)]


def _too_deep() -> InvalidInput:
    return InvalidInput("metadata", "is nested too deeply; flatten it")


def _json(value: object, depth: int) -> Json:
    if depth <= 0:
        raise _too_deep()
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean(value)
        case float() if math.isfinite(value):
            return value
        case datetime() if value.tzinfo is not None:
            return canonical(value)
        case Mapping():
            return {_name(key): _json(inner, depth - 1) for key, inner in value.items()}
        case list() | tuple():
            return [_json(inner, depth - 1) for inner in value]
        case _:
            raise InvalidInput("metadata", f"{value!r:.80} is neither JSON nor a time with a time zone")


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput("metadata", f"the name {key!r:.80} is not a string")
    return clean(key)


def clean_optional(value: str | None) -> str | None:
    return None if value is None else clean(value)

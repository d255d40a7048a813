"""Quarantined documents: texts that match an attack pattern are kept for review."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from conspectus.errors import (
    InvalidInput,
)
from conspectus.ingest.document_fields import Preparation, fingerprint_of
from conspectus.model.quarantine import QUARANTINE, Quarantined, as_given, quarantine_pattern
from conspectus.model.records import (
    Document,
    DocumentChanges,
    Json,
    Metadata,
    NewDocument,
    TextPosition,
)
from conspectus.model.trust import Origin
from conspectus.text.attack_patterns import attack_pattern
from conspectus.text.clean import clean

FIELDS = DocumentChanges.__annotations__.keys()
KEPT = (*sorted(FIELDS - {"text", "places", "spans", "vector"}), "key")
"""The fields of a new document that a stored one has, too."""
BY_WRITER = "by_writer"


def attack_of(new: NewDocument, described: Document) -> str | None:
    """Return the attack pattern of a document that is not trusted."""
    if new.kind == "quarantined":
        raise InvalidInput("kind", "is set by the store")
    if described.trust == "quarantined":
        return BY_WRITER
    if described.trust == "trusted":
        return None
    return attack_pattern(new.text, *texts_beside(described))


def texts_beside(document: Document) -> list[str]:
    """Return the texts that can be in a window beside the text of a document."""
    fields = (document.title, document.key, document.author, document.role)
    return [*filter(None, fields), *strings_in(document.metadata)]


def strings_in(value: Json | Metadata) -> Iterator[str]:
    """Yield all strings in JSON, names of objects included."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                yield name
                yield from strings_in(inner)
        case list():
            for inner in value:
                yield from strings_in(inner)


def refuse_attacks(origin: Origin | None, field: str, *texts: str) -> None:
    """Raise InvalidInput for a text that matches an attack pattern where nothing can be quarantined.

    What a person writes is not examined, as in documents.
    """
    pattern = None if origin in {None, "user"} else attack_pattern(*texts)
    if pattern is not None:
        raise InvalidInput(field, f"matches the attack pattern {pattern}; a person may write it")


def to_quarantined_form(new: NewDocument, described: Document, pattern: str, by: Preparation) -> Document:
    """Return a document without text. Its metadata hold what was given."""
    original: dict[str, Json] = {
        "text": clean(new.text),
        "kind": described.kind,
        "metadata": dict(described.metadata),
        "spans": [list(span) for span in new.spans],
        "places": [_place_fields(position) for position in new.places],
        "trust": "untrusted" if pattern == BY_WRITER else described.trust,
    }
    metadata: Metadata = {QUARANTINE: {"pattern": pattern, "given": original}}
    hidden = replace(described, kind="quarantined", metadata=metadata, trust="quarantined")
    return replace(hidden, fingerprint=fingerprint_of(hidden, (), by))


def _place_fields(position: TextPosition) -> list[Json]:
    """Return a position as JSON; its box follows if it has one."""
    fields: list[Json] = [position.start, position.page, list(position.headings)]
    return fields if position.box is None else [*fields, list(position.box)]


def restore_document(document: Document) -> NewDocument:
    """Return what was given for a quarantined document, at the level that it has once it is released."""
    quarantine: Any = document.metadata[QUARANTINE]
    fields = {name: getattr(as_given(document), name) for name in KEPT}
    return NewDocument(
        text=quarantine["given"]["text"],
        spans=tuple((start, end) for start, end in quarantine["given"]["spans"]),
        places=tuple(
            TextPosition(at, page, tuple(names), *map(tuple, box))
            for at, page, names, *box in quarantine["given"]["places"]
        ),
        **fields,
    )


def to_quarantined(document: Document) -> Quarantined:
    """Return a quarantined document for review."""
    new = restore_document(document)
    return Quarantined(
        id=document.id,
        source=document.source,
        pattern=quarantine_pattern(document) or "",
        kind=new.kind,
        key=document.key,
        title=new.title,
        text=new.text,
        author=new.author,
        origin=document.origin,
        trust=as_given(document).trust,
        recorded=document.recorded,
        metadata=as_given(document).metadata,
    )

"""Quarantined documents as a reviewer reads them."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.parameters import PersonName, StoredKey, StoredText, StoredTitle
from conspectus.model.records import Document, Kind, Metadata
from conspectus.model.trust import Origin, Trust


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined document as it was given, and the attack pattern that it matches.

    `pattern` is `by_writer` if the writer asked for it. `trust` is the level that it has once it is released.
    """

    id: DocumentId
    source: SourceId
    pattern: str
    kind: Kind
    key: StoredKey
    title: StoredTitle
    text: StoredText
    author: PersonName | None
    origin: Origin
    trust: Trust
    recorded: datetime
    metadata: Annotated[Metadata, Example({"lang": "en"})]


QUARANTINE = "quarantine"
"""Metadata of a quarantined document: the pattern, and what was given."""


def quarantine_notice(pattern: str) -> str:
    """Return what a writer is told of a text that is quarantined."""
    return f"quarantined, as it matches the pattern {pattern}"


def quarantine_pattern(document: Document) -> str | None:
    """Return the pattern of a quarantined document."""
    quarantine: Any = document.metadata.get(QUARANTINE)
    if document.kind == "quarantined":
        return str(quarantine["pattern"])
    return None


def as_given(document: Document) -> Document:
    """Return a quarantined document with the fields that it has once it is released; another one as it is."""
    if document.kind != "quarantined":
        return document
    quarantine: Any = document.metadata[QUARANTINE]
    return replace(document, **{name: quarantine["given"][name] for name in ("kind", "metadata", "trust")})


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """Quarantined documents in order of recording; `next` is the cursor of the next page, if any."""

    documents: tuple[Quarantined, ...]
    next: str | None

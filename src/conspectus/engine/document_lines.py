"""Export and import of documents, messages and tasks as JSON Lines."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any, Final

from conspectus.access.policy import require_scope
from conspectus.access.reader import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.document_inputs import DocumentInputs
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.prepare import describe
from conspectus.model.filter import And, Eq, Filter, In
from conspectus.model.records import (
    Document,
    Json,
    NewDocument,
    Period,
    Source,
    SourceKind,
    TextPosition,
    Written,
)
from conspectus.model.reports import DocumentExport
from conspectus.ports import Progress
from conspectus.text.times import canonical, parse_instant

EXPORTED_KINDS: Final = ("page", "message", "task")
OTHER_KINDS: Final = ("caption", "event", "memory")
"""Kinds with an export of their own."""
NOT_IN_LINES: Final = frozenset({"if_match", "vector"})
FIELDS: Final = frozenset(field.name for field in fields(NewDocument)) - NOT_IN_LINES
DEFAULTS: Final = asdict(NewDocument(text=""))
MARK: Final = "\ufeff"
"""The byte order mark that some programs write at the start of a file."""

LineObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line of an export: its number, the source of the document, and all that the line says.

    `parent` is the key of the parent, which is in the same source.
    """

    number: int
    source: str
    source_kind: SourceKind
    content: LineObject

    @property
    def key(self) -> str:
        """The key of the document in its source."""
        return str(self.content["key"])

    @property
    def parent(self) -> str | None:
        """The key of the parent."""
        parent = self.content.get("parent")
        return None if parent is None else str(parent)


class DocumentLines(Service, checked=False):
    """Writes documents as lines, and lines as documents."""

    def __init__(self, context: EngineContext, inputs: DocumentInputs) -> None:
        super().__init__(context)
        self._inputs = inputs

    async def page(
        self, collection: str, filter: Filter, *, after: str | None, limit: int | None
    ) -> DocumentExport:
        """Return a page of lines; the last one counts what is left out."""
        access = await self._authorized.collection(collection)
        condition = And((In("kind", EXPORTED_KINDS), filter))
        size = limit or self._parts.settings.max_export_lines
        documents, cursor = await self._authorized.list(access, condition, after=after, limit=size)
        contents = await self._contents(access, documents)
        left_out: dict[str, int] = {}
        for kind in OTHER_KINDS if cursor is None else ():
            count = await self._authorized.count(access, And((Eq("kind", kind), filter)), status=None)
            left_out |= {f"{kind}s".replace("memorys", "memories"): count} if count else {}
        lines = tuple(json.dumps(contents[document.id], ensure_ascii=False) for document in documents)
        return DocumentExport(lines, cursor, left_out)

    async def write(
        self, lines: str | Iterable[str], collection: str, *, progress: Progress | None
    ) -> list[Written]:
        """Write the documents of lines. Raises InvalidInput."""
        require_scope(self._person, "write", "write")
        longest = self._parts.settings.max_request_bytes
        written: dict[int, Written] = {}
        orphans: list[DocumentLine] = []
        for batch in _batches(lines, longest=longest):
            ready, waiting = await self._split_by_parent(batch, collection)
            orphans += waiting
            written |= await self._write_batch(ready, collection)
            if progress is not None:
                progress("importing", len(written), 0)
        for _, group in groupby(orphans, key=lambda line: line.source):
            written |= await self._write_batch(list(group), collection)
        if written:
            access = await self._authorized.collection(collection)
            await self._context.embed(access.collection, wait=False)
        return [outcome for _, outcome in sorted(written.items())]

    async def _split_by_parent(
        self, batch: Sequence[DocumentLine], collection: str
    ) -> tuple[list[DocumentLine], list[DocumentLine]]:
        """Return the lines whose parents are in the batch or stored, and those that come before theirs."""
        keys = {line.key for line in batch}
        missing = {line.parent for line in batch if line.parent is not None and line.parent not in keys}
        if not missing:
            return list(batch), []
        source, access = await self._writer.writable(batch[0].source, collection, batch[0].source_kind)
        ids = [message_id(source.id, key) for key in sorted(missing)]
        keys |= {document.key for document in await self._authorized.inside(access, ids)}
        ready = [line for line in batch if line.parent is None or line.parent in keys]
        return ready, [line for line in batch if line.parent is not None and line.parent not in keys]

    async def _write_batch(self, batch: Sequence[DocumentLine], collection: str) -> dict[int, Written]:
        """Write the documents of one source; those that are stored just so stay. Return them by line."""
        if not batch:
            return {}
        source, access = await self._writer.writable(batch[0].source, collection, batch[0].source_kind)
        ids = [message_id(source.id, line.key) for line in batch]
        stored = {document.id: document for document in await self._authorized.inside(access, ids)}
        contents = await self._contents(access, list(stored.values()))
        changed = [
            (id, line) for id, line in zip(ids, batch, strict=True) if contents.get(id) != line.content
        ]
        new = [self._document(line, source) for _, line in changed]
        outcomes = await self._context.write(new, source) if new else ()
        by_id = {id: outcome for (id, _), outcome in zip(changed, outcomes, strict=True)}
        return {
            line.number: by_id.get(id) or Written(id, "unchanged", stored[id].chunks)
            for id, line in zip(ids, batch, strict=True)
        }

    def _document(self, line: DocumentLine, source: Source) -> NewDocument:
        """Return the document of a line. Raises InvalidInput with the number of the line."""
        line_fields = {name: member for name, member in line.content.items() if name in FIELDS}
        try:
            if line_fields.get("parent") is not None:
                line_fields["parent"] = message_id(source.id, str(line_fields["parent"]))
            new = NewDocument(**_decode(line_fields))
            describe(new, self._context.preparation(source))
        except (ConspectusError, TypeError, ValueError, KeyError) as fault:
            raise InvalidInput(f"line {line.number}", str(fault)) from fault
        return new

    async def _contents(
        self, access: CollectionAccess, documents: Sequence[Document]
    ) -> dict[str, LineObject]:
        """Return what the lines of documents say, by id."""
        parents = {document.parent for document in documents if document.parent is not None}
        keys = {parent.id: parent.key for parent in await self._authorized.inside(access, sorted(parents))}
        source_ids = {document.source for document in documents}
        sources = {
            source.id: source for source in await self._authorized.sources_by_name(access, sorted(source_ids))
        }
        contents: dict[str, LineObject] = {}
        for document in documents:
            source = sources[document.source]
            new = await self._inputs.read(document, source)
            content = _content(new, source)
            content.pop("parent", None)
            if document.parent in keys:
                content["parent"] = keys[document.parent]
            contents[document.id] = content
        return contents


def _content(new: NewDocument, source: Source) -> dict[str, Json]:
    """Return a document with its source as plain JSON, without defaults."""
    content: dict[str, Any] = {"source": source.name}
    if source.kind != "manual":
        content["source_kind"] = source.kind
    line_fields = {
        name: getattr(new, name) for name in ("key", "title", "text", *sorted(FIELDS)) if name in FIELDS
    }
    content |= {
        name: member for name, member in line_fields.items() if name == "text" or member != DEFAULTS[name]
    }
    if isinstance(new.occurred, Period):
        content["occurred"] = {
            "start": canonical(new.occurred.start),
            "end": canonical(new.occurred.end),
        }
    if new.places:
        content["places"] = [asdict(position) for position in new.places]
    plain: dict[str, Json] = json.loads(json.dumps(content))
    return plain


def _decode(line_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new document."""
    decoded = dict(line_fields)
    if isinstance(decoded.get("occurred"), Mapping):
        span = decoded["occurred"]
        decoded["occurred"] = Period(parse_instant(span["start"]), parse_instant(span["end"]))
    if "places" in decoded:
        decoded["places"] = tuple(
            TextPosition(position["start"], position.get("page"), tuple(position.get("headings", ())))
            for position in decoded["places"]
        )
    if "spans" in decoded:
        decoded["spans"] = tuple(map(tuple, decoded["spans"]))
    return decoded


def _batches(lines: str | Iterable[str], *, longest: int) -> Iterator[list[DocumentLine]]:
    """Yield lines of one source without repeated keys. Raises InvalidInput."""
    batch: dict[str, DocumentLine] = {}
    size = 0
    for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
        line = _read(number, text, longest)
        if line is None:
            continue
        is_full = len(batch) == BATCH_DOCUMENTS or size + len(text) > BATCH_CHARACTERS
        is_other = bool(batch) and next(iter(batch.values())).source != line.source
        if batch and (is_full or is_other or line.key in batch):
            yield list(batch.values())
            batch, size = {}, 0
        batch[line.key] = line
        size += len(text)
    if batch:
        yield list(batch.values())


def _read(number: int, text: str, longest: int) -> DocumentLine | None:
    """Return a line; None for an empty one. Raises InvalidInput."""
    name = f"line {number}"
    if not isinstance(text, str):
        raise InvalidInput(name, "is not a string")
    text = (text.removeprefix(MARK) if number == 1 else text).strip()
    if not text:
        return None
    if len(text) > longest:
        raise InvalidInput(name, f"is longer than {longest} characters")
    content = _parse(name, text)
    _require_fields(name, content)
    return DocumentLine(number, content["source"], content.get("source_kind", "manual"), content)


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(name, "is not JSON") from fault
    if not isinstance(content, dict):
        raise InvalidInput(name, "is not an object")
    return content


def _require_fields(name: str, content: Mapping[str, Any]) -> None:
    for field in ("source", "key", "text"):
        if not isinstance(content.get(field), str):
            raise InvalidInput(name, f"{field} must be a string")
    if unknown := sorted(content.keys() - FIELDS - {"source", "source_kind"}):
        raise InvalidInput(name, f"{unknown[0]} is not a field; give {', '.join(sorted(FIELDS))} and source")
    if content.get("kind", "page") not in EXPORTED_KINDS:
        raise InvalidInput(name, f"kind must be one of {', '.join(EXPORTED_KINDS)}")

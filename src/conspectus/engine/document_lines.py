"""Export and import of documents, messages, tasks and events as JSON Lines."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Final

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import includes_role, require_scope
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext
from conspectus.engine.document_inputs import DocumentInputs
from conspectus.engine.document_relations import RelationWriter
from conspectus.engine.line_order import NumberedLine, parents_first
from conspectus.engine.service import Service
from conspectus.errors import ConspectusError, InvalidInput, NotFound
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.document_fields import message_id
from conspectus.ingest.prepare import describe
from conspectus.ingest.quarantine import restore_document
from conspectus.model.filter import And, Eq, Filter, In, document_row, matches
from conspectus.model.ids import DocumentId
from conspectus.model.quarantine import as_given, quarantine_pattern
from conspectus.model.records import (
    Document,
    EmbeddingSpace,
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

EXPORTED_KINDS: Final = ("page", "message", "task", "event")
OTHER_KINDS: Final = {"caption": "captions", "memory": "memories"}
"""Kinds with an export of their own, and their names in `left_out`."""
QUARANTINED: Final = "quarantined"
"""The first word of a cursor among quarantined documents, and their name in `left_out`."""
BESIDE_FIELDS: Final = frozenset({"source", "source_kind", "source_metadata", "vector_space", "relations"})
"""Fields of a line about the source, the vector and the relations of its document."""
FIELDS: Final = frozenset(field.name for field in fields(NewDocument)) - {"if_match"}
"""Fields of a line that are fields of its document."""
DEFAULTS: Final = asdict(NewDocument(text=""))

LineObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line of an export: its number, the name and kind of its source, and its content as JSON."""

    number: int
    source: str
    source_kind: SourceKind
    content: LineObject

    @property
    def source_metadata(self) -> Mapping[str, Json] | None:
        """The metadata of the source; None if the line has none."""
        metadata = self.content.get("source_metadata")
        return metadata if isinstance(metadata, Mapping) else None

    def in_space(self, space: EmbeddingSpace | None) -> "DocumentLine":
        """Return the line, without its vector if that is of another embedding model than the collection's."""
        name = self.content.get("vector_space")
        if name is None or (space is not None and name == space.name):
            return self
        content = {field: self.content[field] for field in self.content.keys() - {"vector", "vector_space"}}
        return replace(self, content=content)

    @property
    def key(self) -> str:
        """The key of the document in its source."""
        return str(self.content["key"])

    @property
    def parent(self) -> str | None:
        """The key of the parent, which is in the same source."""
        parent = self.content.get("parent")
        return None if parent is None else str(parent)


class DocumentLines(Service, checked=False):
    """Exports documents as lines, and imports lines as documents."""

    def __init__(
        self, context: EngineContext, inputs: DocumentInputs, relation_writer: RelationWriter
    ) -> None:
        super().__init__(context)
        self._inputs = inputs
        self._relation_writer = relation_writer

    async def page(
        self, collection: str, filter: Filter, *, after: str | None, limit: int | None
    ) -> DocumentExport:
        """Return a page of lines; the last page counts the documents that are left out."""
        access = await self._authorized.collection(collection)
        size = limit or self._parts.settings.max_export_lines
        if after is not None and after.partition(" ")[0] == QUARANTINED:
            documents, cursor = await self._read_quarantined(access, filter, after, size)
        else:
            documents, cursor = await self._read_visible(access, filter, after, size)
        contents = await self._line_contents(access, documents)
        left_out = {} if cursor is not None else await self._count_left_out(access, filter)
        lines = tuple(json.dumps(contents[document.id], ensure_ascii=False) for document in documents)
        return DocumentExport(lines, cursor, left_out)

    async def _read_visible(
        self, access: CollectionAccess, filter: Filter, after: str | None, limit: int
    ) -> tuple[Sequence[Document], str | None]:
        """Return a page of documents, and the cursor of the next page; quarantined documents come last."""
        condition = And((In("kind", EXPORTED_KINDS), filter))
        documents, cursor = await self._authorized.list(access, condition, after=after, limit=limit)
        if cursor is None and self._may_review(access):
            quarantined, _ = await self._authorized.list_quarantined(access, after=None, limit=1)
            cursor = QUARANTINED if quarantined else None
        return documents, cursor

    async def _read_quarantined(
        self, access: CollectionAccess, filter: Filter, after: str, limit: int
    ) -> tuple[Sequence[Document], str | None]:
        """Return the documents of a page of quarantined ones that match, and the cursor of the next page."""
        if not self._may_review(access):
            return (), None
        position = after.partition(" ")[2] or None
        page, following = await self._authorized.list_quarantined(access, after=position, limit=limit)
        matching = [document for document in page if _is_exported(document, filter)]
        return matching, None if following is None else f"{QUARANTINED} {following}"

    def _may_review(self, access: CollectionAccess) -> bool:
        """Return whether the person may read quarantined texts."""
        is_manager = includes_role(access.roles.collection, "manager")
        return is_manager and self._person.origin in {None, "user"}

    async def _count_left_out(self, access: CollectionAccess, filter: Filter) -> Mapping[str, int]:
        """Count the documents that no line contains, by kind."""
        counts: dict[str, int] = {}
        for kind, name in OTHER_KINDS.items():
            counts[name] = await self._authorized.count(access, And((Eq("kind", kind), filter)), status=None)
        if not self._may_review(access):
            pages = [page async for page in self._authorized.read_quarantined(access, filter)]
            counts[QUARANTINED] = sum(
                as_given(document).kind in EXPORTED_KINDS for page in pages for document in page
            )
        return {name: count for name, count in counts.items() if count}

    async def write(
        self, lines: str | Iterable[str], collection: str, *, progress: Progress | None
    ) -> list[Written]:
        """Write the documents of lines. Raises InvalidInput."""
        require_scope(self._person, "write", "write")
        max_characters = self._parts.settings.max_request_bytes
        written: dict[int, Written] = {}
        related: list[DocumentLine] = []
        for batch in _batches(parents_first(lines), max_characters=max_characters):
            written |= await self._write_batch(batch, collection)
            related += [line for line in batch if line.content.get("relations")]
            if progress is not None:
                progress("importing", len(written), 0)
        if written:
            access = await self._authorized.collection(collection)
            for line in related:
                await self._set_relations(access, line)
            await self._context.embed(access.collection, wait=False)
        return [outcome for _, outcome in sorted(written.items())]

    async def _write_batch(self, batch: Sequence[DocumentLine], collection: str) -> dict[int, Written]:
        """Write the documents of one source that are new or changed; return outcomes by line number."""
        source, access = await self._open_source(batch[0], collection)
        batch = [line.in_space(access.collection.space) for line in batch]
        ids = [message_id(source.id, line.key) for line in batch]
        documents = await self._authorized.inside(access, ids, quarantined=True)
        stored = {document.id: document for document in documents}
        contents = await self._line_contents(access, documents)
        changed = [
            (id, line) for id, line in zip(ids, batch, strict=True) if contents.get(id) != line.content
        ]
        new = [self._document(line, source) for _, line in changed]
        outcomes = await self._context.write(new, source) if new else ()
        by_id = {id: outcome for (id, _), outcome in zip(changed, outcomes, strict=True)}
        return {
            line.number: by_id.get(id) or _report_unchanged(stored[id])
            for id, line in zip(ids, batch, strict=True)
        }

    async def _set_relations(self, access: CollectionAccess, line: DocumentLine) -> None:
        """Set the relations of a line to documents that are stored. Raises InvalidInput."""
        try:
            source = await self._authorized.require_source(access, line.source)
            relations: Any = line.content["relations"]
            for relation in relations:
                other_source = await self._authorized.require_source(access, relation["source"])
                other = message_id(other_source.id, relation["key"])
                await self._relation_writer.set(message_id(source.id, line.key), other, relation["kind"])
        except (NotFound, TypeError, KeyError) as fault:
            raise InvalidInput(f"line {line.number}", f"its relations cannot be set: {fault}") from fault

    async def _read_relations(
        self, access: CollectionAccess, documents: Sequence[Document]
    ) -> Mapping[str, list[Json]]:
        """Return the relations of documents that people set to documents that the person may read, by id."""
        relations: dict[str, list[Json]] = {}
        if not documents or not await self._authorized.has_statements(access):
            return relations
        ids = {document.id for document in documents}
        rows, readable = await self._authorized.read_relations(access, sorted(ids))
        others = [DocumentId(stored.statement.target) for stored in rows.statements]
        source_ids = sorted({readable[other].source for other in others if other in readable})
        sources = {source.id: source for source in await self._authorized.sources_by_name(access, source_ids)}
        for stored, other in zip(rows.statements, others, strict=True):
            if stored.statement.basis == "person" and stored.document in ids and other in readable:
                target = readable[other]
                relations.setdefault(stored.document, []).append(
                    {
                        "kind": stored.statement.kind,
                        "source": sources[target.source].name,
                        "key": target.key,
                    }
                )
        return relations

    async def _open_source(self, line: DocumentLine, collection: str) -> tuple[Source, CollectionAccess]:
        """Return the source of a line, if the user may write to it, with the metadata of the line.

        A stream keeps the metadata that it has, as its captions follow its clock.
        """
        source, access = await self._writer.writable(line.source, collection, line.source_kind)
        metadata = line.source_metadata
        if metadata is None or metadata == source.metadata or (source.kind == "stream" and source.metadata):
            return source, access
        return await self._writer.source(line.source, collection, metadata, line.source_kind)

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

    async def _line_contents(
        self, access: CollectionAccess, documents: Sequence[Document]
    ) -> dict[str, LineObject]:
        """Return the content of the line of each document, by id."""
        keys = await self._read_keys(access, [document.parent for document in documents if document.parent])
        source_ids = sorted({document.source for document in documents})
        sources = {source.id: source for source in await self._authorized.sources_by_name(access, source_ids)}
        space = access.collection.space
        relations = await self._read_relations(access, documents)
        contents: dict[str, LineObject] = {}
        for document in documents:
            source = sources[document.source]
            if document.kind == "quarantined":
                new = replace(restore_document(document), trust="quarantined")
            else:
                new = await self._inputs.read(document, source, space)
            content = _line_content(new, source)
            content.pop("parent", None)
            if document.parent is not None and document.parent in keys:
                content["parent"] = keys[document.parent]
            if new.vector is not None and space is not None:
                content["vector_space"] = space.name
            if document.id in relations:
                content["relations"] = relations[document.id]
            contents[document.id] = content
        return contents

    async def _read_keys(self, access: CollectionAccess, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the keys of documents by id."""
        documents = await self._authorized.inside(
            access, sorted(set(ids)), quarantined=self._may_review(access)
        )
        return {document.id: document.key for document in documents}


def _is_exported(document: Document, filter: Filter) -> bool:
    """Return whether a quarantined document would be in an export of the filter if it were released."""
    given = as_given(document)
    return given.kind in EXPORTED_KINDS and matches(filter, document_row(given))


def _report_unchanged(document: Document) -> Written:
    return Written(document.id, "unchanged", document.chunks, quarantine_pattern(document))


def _line_content(new: NewDocument, source: Source) -> dict[str, Json]:
    """Return a document with its source as plain JSON, without defaults."""
    content: dict[str, Any] = {"source": source.name}
    if source.kind != "manual":
        content["source_kind"] = source.kind
    if source.metadata:
        content["source_metadata"] = dict(source.metadata)
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
        content["places"] = [
            {name: member for name, member in asdict(position).items() if name != "box" or member}
            for position in new.places
        ]
    plain: dict[str, Json] = json.loads(json.dumps(content))
    return plain


def _decode(line_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line as those of a new document: times, positions and vectors are objects."""
    decoded = dict(line_fields)
    if isinstance(decoded.get("occurred"), Mapping):
        span = decoded["occurred"]
        decoded["occurred"] = Period(parse_instant(span["start"]), parse_instant(span["end"]))
    if "places" in decoded:
        decoded["places"] = tuple(
            TextPosition(
                position["start"],
                position.get("page"),
                tuple(position.get("headings", ())),
                tuple(position["box"]) if position.get("box") else None,
            )
            for position in decoded["places"]
        )
    if decoded.get("vector") is not None:
        decoded["vector"] = tuple(decoded["vector"])
    if "spans" in decoded:
        decoded["spans"] = tuple(map(tuple, decoded["spans"]))
    return decoded


def _batches(lines: Iterable[NumberedLine], *, max_characters: int) -> Iterator[list[DocumentLine]]:
    """Yield lines of one source without repeated keys. Raises InvalidInput."""
    batch: dict[str, DocumentLine] = {}
    size = 0
    for number, text in lines:
        line = _parse_line(number, text, max_characters)
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


def _parse_line(number: int, text: str, max_characters: int) -> DocumentLine | None:
    """Parse a line; None for an empty one. Raises InvalidInput."""
    name = f"line {number}"
    text = text.strip()
    if not text:
        return None
    if len(text) > max_characters:
        raise InvalidInput(name, f"is longer than {max_characters} characters")
    content = _parse_object(name, text)
    _require_fields(name, content)
    return DocumentLine(number, content["source"], content.get("source_kind", "manual"), content)


def _parse_object(name: str, text: str) -> dict[str, Any]:
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
    if unknown := sorted(content.keys() - FIELDS - BESIDE_FIELDS):
        raise InvalidInput(name, f"{unknown[0]} is not a field; give {', '.join(sorted(FIELDS))} and source")
    if not isinstance(content.get("source_metadata", {}), dict):
        raise InvalidInput(name, "source_metadata must be an object")
    if content.get("kind", "page") not in EXPORTED_KINDS:
        raise InvalidInput(name, f"kind must be one of {', '.join(EXPORTED_KINDS)}")

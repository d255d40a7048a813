"""import: memories and documents from the stores and files of other products."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.console import Group, RenderableType

from conspectus.cli.document_lines import import_documents
from conspectus.cli.options import InScope, Wait
from conspectus.cli.output import progress, rows_table
from conspectus.cli.session import NewMemorySession, NewSession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe
from conspectus.memory.documents import document_of
from conspectus.memory.jsonl import new_line
from conspectus.memory.scopes import check_scope
from conspectus.model.filter import Eq
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.memory import OWN, MemoryWritten, NewMemory, Scope
from conspectus.model.pages import portions
from conspectus.model.quarantine import quarantine_notice
from conspectus.model.records import Document, EmbeddingSpace, NewDocument, Source, Written
from conspectus.ports.imports import NAMED, ForeignPlace, ForeignReader, ForeignRecord, LeftOut, Skipped
from conspectus.text.clean import clean
from conspectus.text.counts import format_count

if TYPE_CHECKING:
    from conspectus.ports import Progress

OUTCOMES: Final = ("added", "replaced", "updated", "unchanged")
NO_SOURCE: Final = Source(SourceId(""), CollectionId(""), "")
Place = Annotated[str, typer.Argument(metavar="PLACE", help="Folder, file or URL of the store.")]
Names = Annotated[
    list[str] | None, typer.Option("--name", help="Collection to read (default: all); repeatable.")
]
TextFields = Annotated[
    list[str] | None,
    typer.Option("--text-field", help="Field that holds the text, the preferred one first; repeatable."),
]


@dataclass(frozen=True, slots=True)
class PruneOption:
    """What becomes of documents that are gone from the store that is read."""

    prune: Annotated[bool, typer.Option("--prune", help="Delete documents that are gone from the store.")] = (
        False
    )


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import."""

    embedder: Annotated[
        str | None,
        typer.Option(help="Embedding model of the stored vectors (default: the one that the store names)."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report, but write nothing.")] = False
    wait: Wait = True


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The numbers of an import. Some vectors of the store are kept, others are computed again.

    `missing` are stored documents by source that the store has no more; they are kept unless pruned.
    """

    read: int
    added: int
    replaced: int
    updated: int
    unchanged: int
    skipped: Mapping[str, Skipped]
    no_place: Mapping[str, int]
    remarks: Mapping[str, int]
    vectors_kept: int
    vectors_computed: int
    missing: Mapping[str, Skipped]
    pruned: int

    def count_skipped(self) -> int:
        """Return the number of records that were not taken."""
        return sum(skips.count for skips in self.skipped.values())


def mem0(
    place: Place,
    session: NewMemorySession,
    scope: InScope,
    options: ImportOptions,
    *,
    name: Annotated[str, typer.Option(help="Collection of mem0 that is read.")] = "mem0",
    history: Annotated[
        Path | None, typer.Option(help="History database of mem0, usually ~/.mem0/history.db.")
    ] = None,
) -> None:
    """Import memories of mem0 from Qdrant or Chroma."""
    at = ForeignPlace(place, (name,), history=None if history is None else str(history))
    _import(session, _reader("mem0", at), options, scope)


def langgraph(
    place: Place,
    session: NewMemorySession,
    scope: InScope,
    options: ImportOptions,
    *,
    namespace: Annotated[
        str | None, typer.Option(help="Where the scope is in a namespace, as in memories.{user}.")
    ] = None,
    text_field: TextFields = None,
) -> None:
    """Import items of a LangGraph store, in SQLite or PostgreSQL."""
    at = ForeignPlace(place, text_fields=tuple(text_field or ()), namespace=namespace)
    _import(session, _reader("langgraph", at), options, scope)


def chroma(
    place: Place, session: NewSession, options: ImportOptions, pruning: PruneOption, *, name: Names = None
) -> None:
    """Import documents from a folder of Chroma."""
    _import(session, _reader("chroma", ForeignPlace(place, tuple(name or ()))), options, prune=pruning.prune)


def qdrant(
    place: Place,
    session: NewSession,
    options: ImportOptions,
    pruning: PruneOption,
    *,
    name: Names = None,
    text_field: TextFields = None,
) -> None:
    """Import documents from a folder or a server of Qdrant."""
    at = ForeignPlace(place, tuple(name or ()), tuple(text_field or ()))
    _import(session, _reader("qdrant", at), options, prune=pruning.prune)


def memory_formats(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and ZIP archives.")],
    session: NewMemorySession,
    scope: InScope,
    options: ImportOptions,
) -> None:
    """Import memory files of agents and exports of chats."""
    from conspectus import bootstrap

    _import(session, bootstrap.memory_files(paths, session.settings), options, scope)


def _reader(kind: str, at: ForeignPlace) -> ForeignReader:
    from conspectus import bootstrap

    return bootstrap.foreign_reader(kind, at)


def _import(
    session: Session,
    read: ForeignReader,
    options: ImportOptions,
    scope: InScope | None = None,
    *,
    prune: bool = False,
) -> None:
    left_out = LeftOut()
    into = None if scope is None else scope.scope()
    with progress() as bars:
        importer = Importer(session, options, into, left_out)
        limits = {"most": BATCH_DOCUMENTS, "room": BATCH_CHARACTERS}
        for batch in portions(read(left_out), lambda record: len(record.new.text), **limits):
            importer.write(batch, bars)
        importer.find_missing(prune=prune)
        if options.wait and importer.wrote:
            session.engine.documents.wait_until_embedded(collection=session.collection, progress=bars)
    report = importer.report()
    for source, documents in report.missing.items():
        session.note(_missing_line(source, documents))
    if scope is not None and importer.is_repeated:
        session.note("memories that were deleted there are kept; `conspectus memory delete ID` deletes one")
    session.show(report, _picture(report), matches=report.read - report.count_skipped())


class Importer:
    """Writes records through the services of an engine. Records that are stored already change nothing.

    `into` is the scope of memories that name none (None: the records are documents).
    """

    def __init__(
        self, session: Session, options: ImportOptions, into: Scope | None, left_out: LeftOut
    ) -> None:
        self._session = session
        self._options = options
        self._into = into
        self._left_out = left_out
        self._accepted = 0
        self._outcomes: Counter[str] = Counter()
        self._vectors: Counter[str] = Counter()
        self._keys: dict[str, set[str | None]] = {}
        self._missing: dict[str, Skipped] = {}
        self._pruned = 0

    @property
    def wrote(self) -> bool:
        """Whether anything was written."""
        return self._outcomes.total() > 0

    @property
    def is_repeated(self) -> bool:
        """Whether a record was stored before."""
        return self._outcomes.total() > self._outcomes["added"]

    def write(self, batch: Sequence[ForeignRecord], bars: "Progress | None") -> None:
        """Write a batch; what cannot be stored is skipped."""
        for record in batch:
            if isinstance(record.place, str):
                self._keys.setdefault(record.place, set()).add(record.new.key)
        fitting = [fitted for fitted in map(self._fit, batch) if fitted is not None]
        self._accepted += len(fitting)
        if self._options.dry_run:
            self._vectors.update(fitted.vector for fitted in fitting)
        else:
            for fitted, written in self._write_batch(fitting):
                self._note(fitted, written)
        if bars is not None:
            bars("importing", self._accepted, 0)

    def find_missing(self, *, prune: bool) -> None:
        """After all batches: count the documents that the store has no more, or delete them."""
        for source, keys in self._keys.items():
            missing = [document for document in self._stored_documents(source) if document.key not in keys]
            if prune and not self._options.dry_run:
                for start in range(0, len(missing), BATCH_DOCUMENTS):
                    ids = [document.id for document in missing[start : start + BATCH_DOCUMENTS]]
                    self._pruned += self._session.engine.documents.delete(ids).documents
            elif missing:
                names = tuple(str(document.key) for document in missing[:NAMED])
                self._missing[source] = Skipped(len(missing), names)

    def _stored_documents(self, source: str) -> Iterator[Document]:
        """Yield the documents of a source, page by page."""
        engine, collection = self._session.engine, self._session.collection
        try:
            source_id = engine.collections.get_source(source, collection=collection).id
        except NotFound:
            # Of a dry run, or without any document that could be stored.
            return
        of_source, after = Eq("source", source_id), None
        while True:
            page = engine.documents.list(
                collection=collection, filter=of_source, after=after, limit=BATCH_DOCUMENTS
            )
            yield from page.documents
            after = page.next
            if after is None:
                return

    def report(self) -> ImportReport:
        """Return the numbers so far."""
        left_out, counts = self._left_out, self._outcomes
        return ImportReport(
            read=self._accepted + sum(skipped.count for skipped in left_out.records.values()),
            added=counts["added"],
            replaced=counts["replaced"],
            updated=counts["updated"],
            unchanged=counts["unchanged"],
            skipped=left_out.records,
            no_place=left_out.fields,
            remarks=left_out.remarks,
            vectors_kept=self._vectors["kept"],
            vectors_computed=self._vectors["computed"],
            missing=self._missing,
            pruned=self._pruned,
        )

    def _note(self, fitted: "Fitted", written: Written | MemoryWritten) -> None:
        """Count what was done. The vector of an unchanged record stays as it was stored."""
        self._outcomes[written.outcome] += 1
        if written.outcome != "unchanged":
            self._vectors[fitted.vector] += 1
        if written.quarantined is not None:
            review = f"conspectus quarantine list --collection {self._session.collection}"
            self._left_out.remark(f"{quarantine_notice(written.quarantined)}; review: {review}")

    @cached_property
    def _space(self) -> EmbeddingSpace | None:
        """The embedding space of the collection, which is created if it is missing."""
        engine, name = self._session.engine, self._session.collection
        try:
            return engine.collections.get(name).space
        except NotFound:
            if self._options.dry_run:
                return None
        collection = engine.collections.create(name)
        if self._into is not None:
            # As in every collection that memories make.
            engine.graph.set_entity_extraction(True, collection=name)
        return collection.space

    @cached_property
    def _model(self) -> str | None:
        from conspectus import bootstrap

        return None if self._options.embedder is None else bootstrap.embedding_model(self._options.embedder)

    @cached_property
    def _limits(self) -> Preparation:
        from conspectus import bootstrap

        return Preparation(NO_SOURCE, self._session.settings, count=len, now=bootstrap.now())

    def _fit(self, record: ForeignRecord) -> "Fitted | None":
        """Return the record as it can be stored, with its whole scope; None, counted, if it cannot."""
        new, target = replace(record.new, vector=None), record.place
        try:
            if isinstance(target, Scope):
                into = self._into or Scope()
                pairs = zip(astuple(target), astuple(into), strict=True)
                target = check_scope(Scope(*(scope_part or other for scope_part, other in pairs)))
            if isinstance(new, NewMemory):
                document = document_of(new, Scope(), now=self._limits.now, beside={})
                metadata = describe(document, self._limits)[0].metadata.get(OWN)
                new = replace(new, metadata=metadata if isinstance(metadata, dict) else {})
            else:
                describe(new, self._limits)
        except InvalidInput as fault:
            reason = f"{fault.field} over the limit" if isinstance(fault, TooLarge) else str(fault)
            self._left_out.skip(reason, str(new.key))
            return None
        return self._with_vector(record, replace(record, place=target, new=new))

    def _with_vector(self, record: ForeignRecord, fitted: ForeignRecord) -> "Fitted":
        """Return the record with its vector, if that is of the collection's space."""
        vector, model, new = record.new.vector, self._model or record.model, fitted.new
        if vector is None:
            return Fitted(fitted, "none")
        space = None if model is None else self._space
        fits = space is not None and (space.model, space.dimensions) == (model, len(vector))
        if not (fits and any(vector) and all(map(math.isfinite, vector))):
            return Fitted(fitted, "computed")
        if isinstance(new, NewMemory):
            return Fitted(replace(fitted, new=replace(new, vector=vector)), "kept")
        # A vector stands for its whole text, which therefore stays one chunk.
        text = clean(new.text)
        return Fitted(
            replace(fitted, new=replace(new, text=text, spans=((0, len(text)),), vector=vector)), "kept"
        )

    def _write_batch(self, batch: Sequence["Fitted"]) -> Iterator[tuple["Fitted", Written | MemoryWritten]]:
        """Write memories with their times, memories without times by scope, and documents by source."""
        groups: dict[Scope | str | None, list[Fitted]] = {}
        for fitted in batch:
            record = fitted.record
            dated = isinstance(record.new, NewMemory) and record.created and record.updated
            groups.setdefault(None if dated else record.place, []).append(fitted)
        for target, group in groups.items():
            yield from zip(group, self._write_to(target, [fitted.record for fitted in group]), strict=True)

    def _write_to(
        self, target: Scope | str | None, records: Sequence[ForeignRecord]
    ) -> Sequence[Written | MemoryWritten]:
        engine, collection = self._session.engine, self._session.collection
        news = [replace(record.new, origin="import") for record in records]
        if isinstance(target, str):
            documents = [new for new in news if isinstance(new, NewDocument)]
            return engine.documents.add(documents, source=target, collection=collection)
        if isinstance(target, Scope):
            memories = [new for new in news if isinstance(new, NewMemory)]
            return engine.memory.add(memories, scope=target, collection=collection)
        return engine.memory.import_lines(list(map(_line, records)), collection=collection)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A record as it is stored, and what becomes of its vector."""

    record: ForeignRecord
    vector: Literal["none", "kept", "computed"]


def _line(record: ForeignRecord) -> str:
    new, scope, created, updated = record.new, record.place, record.created, record.updated
    if not (isinstance(new, NewMemory) and isinstance(scope, Scope) and created and updated):
        raise TypeError("only memories with times have lines")
    return new_line(new, scope, (*record.earlier, (updated, new.text)), recorded=created)


def _missing_line(source: str, documents: Skipped) -> str:
    names = ", ".join(documents.names) + (", …" if documents.count > len(documents.names) else "")
    gone = f"{format_count(documents.count, 'document')} of {source!r} gone from the store"
    return f"{gone}, kept here ({names}): --prune deletes"


def _picture(report: ImportReport) -> RenderableType:
    counts = ", ".join(f"{getattr(report, name):,} {name}" for name in OUTCOMES)
    pruned = f", {report.pruned:,} pruned" if report.pruned else ""
    skipped = f"{report.count_skipped():,} skipped"
    parts: list[RenderableType] = [f"{report.read:,} read: {counts}{pruned}, {skipped}"]
    if report.vectors_kept or report.vectors_computed:
        parts.append(f"vectors: {report.vectors_kept:,} kept, {report.vectors_computed:,} computed again")
    if report.skipped:
        rows = ((skips.count, reason, skips.names) for reason, skips in report.skipped.items())
        parts.append(rows_table(("skipped", "reason", "records"), rows))
    if report.no_place:
        parts.append(
            rows_table(
                ("values", "field without a place"), ((n, name) for name, n in report.no_place.items())
            )
        )
    if report.remarks:
        parts.append(rows_table(("times", "remark"), ((n, what) for what, n in report.remarks.items())))
    return Group(*parts)


IMPORT_COMMANDS: Final = {
    "mem0": mem0, "langgraph": langgraph, "chroma": chroma, "qdrant": qdrant,
    "memory-formats": memory_formats, "documents": import_documents,
}  # fmt: skip

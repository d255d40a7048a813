"""import: memories and documents from the stores and files of other products."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType

from conspectus.cli.memory import InScope
from conspectus.cli.options import Wait
from conspectus.cli.output import progress, rows_table
from conspectus.cli.session import NewMemorySession, NewSession, Session
from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus.ingest.prepare import BATCH_CHARACTERS, BATCH_DOCUMENTS, Preparation, describe
from conspectus.memory.documents import document_of
from conspectus.memory.jsonl import new_line
from conspectus.memory.scopes import checked
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.memory import OWN, NewMemory, Scope
from conspectus.model.pages import portions
from conspectus.model.records import EmbeddingSpace, NewDocument, Source
from conspectus.ports.imports import ForeignPlace, ForeignReader, ForeignRecord, LeftOut, Skipped
from conspectus.text.clean import clean

if TYPE_CHECKING:
    from conspectus.ports import Progress

OUTCOMES: Final = ("added", "replaced", "updated", "unchanged")
NOWHERE: Final = Source(SourceId(""), CollectionId(""), "")
Place = Annotated[str, typer.Argument(metavar="PLACE", help="Folder, file or URL of the store.")]
Names = Annotated[
    list[str] | None, typer.Option("--name", help="Collection to read (default: all); repeatable.")
]
TextFields = Annotated[
    list[str] | None,
    typer.Option("--text-field", help="Field that holds the text, the preferred one first; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Importing:
    """How to import."""

    embedder: Annotated[
        str | None,
        typer.Option(help="Embedding model of the stored vectors (default: the one that the store names)."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report, but write nothing.")] = False
    wait: Wait = True


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. Of the vectors in the store, some were kept, and others are computed again."""

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


def mem0(
    place: Place,
    session: NewMemorySession,
    scope: InScope,
    how: Importing,
    *,
    name: Annotated[str, typer.Option(help="Collection of the memories.")] = "mem0",
    history: Annotated[
        Path | None, typer.Option(help="History database of mem0, usually ~/.mem0/history.db.")
    ] = None,
) -> None:
    """Import memories of mem0 from Qdrant or Chroma."""
    at = ForeignPlace(place, (name,), history=None if history is None else str(history))
    _import(session, _reader("mem0", at), how, scope)


def langgraph(
    place: Place,
    session: NewMemorySession,
    scope: InScope,
    how: Importing,
    *,
    namespace: Annotated[
        str | None, typer.Option(help="Where the scope is in a namespace, as in memories.{user}.")
    ] = None,
    text_field: TextFields = None,
) -> None:
    """Import items of a LangGraph store, in SQLite or PostgreSQL."""
    at = ForeignPlace(place, text_fields=tuple(text_field or ()), namespace=namespace)
    _import(session, _reader("langgraph", at), how, scope)


def chroma(place: Place, session: NewSession, how: Importing, *, name: Names = None) -> None:
    """Import documents from a folder of Chroma."""
    _import(session, _reader("chroma", ForeignPlace(place, tuple(name or ()))), how)


def qdrant(
    place: Place, session: NewSession, how: Importing, *, name: Names = None, text_field: TextFields = None
) -> None:
    """Import documents from a folder or a server of Qdrant."""
    at = ForeignPlace(place, tuple(name or ()), tuple(text_field or ()))
    _import(session, _reader("qdrant", at), how)


def memory_formats(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders and ZIP archives.")],
    session: NewMemorySession,
    scope: InScope,
    how: Importing,
) -> None:
    """Import memory files of agents and exports of chats."""
    from conspectus import bootstrap

    _import(session, bootstrap.memory_files(paths, session.settings), how, scope)


def _reader(kind: str, at: ForeignPlace) -> ForeignReader:
    from conspectus import bootstrap

    return bootstrap.foreign_reader(kind, at)


def _import(session: Session, read: ForeignReader, how: Importing, scope: InScope | None = None) -> None:
    left = LeftOut()
    into = None if scope is None else scope.scope()
    with progress() as bars:
        importer = Importer(session, how, into, left)
        limits = {"most": BATCH_DOCUMENTS, "room": BATCH_CHARACTERS}
        for batch in portions(read(left), lambda record: len(record.new.text), **limits):
            importer.write(batch, bars)
        if how.wait and importer.wrote:
            session.engine.documents.wait_until_embedded(collection=session.collection, progress=bars)
    report = importer.report()
    session.show(report, _picture(report), found=report.read)


class Importer:
    """Writes records through the services of an engine. Records that are stored just so change nothing.

    `into` is the scope of memories that name none (None: the records are documents).
    """

    def __init__(self, session: Session, how: Importing, into: Scope | None, left: LeftOut) -> None:
        self._session = session
        self._how = how
        self._into = into
        self._left = left
        self._accepted = self._kept = self._computed = 0
        self._outcomes: Counter[str] = Counter()

    @property
    def wrote(self) -> bool:
        """Whether anything was written."""
        return self._outcomes.total() > 0

    def write(self, batch: Sequence[ForeignRecord], bars: "Progress | None") -> None:
        """Write a batch; what cannot be stored is skipped."""
        fitting = [each for each in map(self._fitted, batch) if each is not None]
        self._accepted += len(fitting)
        if not self._how.dry_run:
            for outcome in self._written(fitting):
                self._outcomes[outcome] += 1
        if bars is not None:
            bars("importing", self._accepted, 0)

    def report(self) -> ImportReport:
        """Return the numbers so far."""
        left, counts = self._left, self._outcomes
        return ImportReport(
            read=self._accepted + sum(each.count for each in left.records.values()),
            added=counts["added"],
            replaced=counts["replaced"],
            updated=counts["updated"],
            unchanged=counts["unchanged"],
            skipped=left.records,
            no_place=left.fields,
            remarks=left.remarks,
            vectors_kept=self._kept,
            vectors_computed=self._computed,
        )

    @cached_property
    def _space(self) -> EmbeddingSpace | None:
        """The embedding space of the collection, which is created if it is missing."""
        engine, name = self._session.engine, self._session.collection
        try:
            return engine.collections.get(name).space
        except NotFound:
            if self._how.dry_run:
                return None
        made = engine.collections.create(name)
        if self._into is not None:
            # As in every collection that memories make.
            engine.graph.set_entity_extraction(True, collection=name)
        return made.space

    @cached_property
    def _model(self) -> str | None:
        from conspectus import bootstrap

        return None if self._how.embedder is None else bootstrap.embedding_model(self._how.embedder)

    @cached_property
    def _limits(self) -> Preparation:
        from conspectus import bootstrap

        return Preparation(NOWHERE, self._session.settings, count=len, now=bootstrap.now())

    def _fitted(self, record: ForeignRecord) -> ForeignRecord | None:
        """Return the record as it can be stored, with its whole scope; None, counted, if it cannot."""
        new, place = replace(record.new, vector=None), record.place
        try:
            if isinstance(place, Scope):
                into = self._into or Scope()
                pairs = zip(astuple(place), astuple(into), strict=True)
                place = checked(Scope(*(own or other for own, other in pairs)))
            if isinstance(new, NewMemory):
                document = document_of(new, Scope(), now=self._limits.now, beside={})
                own = describe(document, self._limits)[0].metadata.get(OWN)
                new = replace(new, metadata=own if isinstance(own, dict) else {})
            else:
                describe(new, self._limits)
        except InvalidInput as fault:
            reason = f"{fault.field} over the limit" if isinstance(fault, TooLarge) else str(fault)
            self._left.skip(reason, str(new.key))
            return None
        return replace(record, place=place, new=self._with_vector(record, new))

    def _with_vector(self, record: ForeignRecord, new: NewMemory | NewDocument) -> NewMemory | NewDocument:
        """Return the input with the vector of the record, if that is of the collection's space."""
        vector, model = record.new.vector, self._model or record.model
        if vector is None:
            return new
        space = None if model is None else self._space
        fits = space is not None and (space.model, space.dimensions) == (model, len(vector))
        if not (fits and any(vector) and all(map(math.isfinite, vector))):
            self._computed += 1
            return new
        self._kept += 1
        if isinstance(new, NewMemory):
            return replace(new, vector=vector)
        # A vector stands for its whole text, which therefore stays one chunk.
        return replace(new, text=clean(new.text), spans=((0, len(clean(new.text))),), vector=vector)

    def _written(self, batch: Sequence[ForeignRecord]) -> Iterator[str]:
        """Write memories with their times, memories without times by scope, and documents by source."""
        engine, collection = self._session.engine, self._session.collection
        lines: list[str] = []
        memories: dict[Scope, list[NewMemory]] = {}
        documents: dict[str, list[NewDocument]] = {}
        for each in batch:
            match each.new, each.place:
                case NewMemory() as new, Scope() as scope if each.created and each.updated:
                    states = (*each.earlier, (each.updated, new.text))
                    lines.append(new_line(new, scope, states, recorded=each.created))
                case NewMemory() as new, Scope() as scope:
                    memories.setdefault(scope, []).append(replace(new, origin="import"))
                case NewDocument() as new, str() as source:
                    documents.setdefault(source, []).append(replace(new, origin="import"))
        if lines:
            yield from (each.outcome for each in engine.memory.import_lines(lines, collection=collection))
        for scope, given in memories.items():
            yield from (each.outcome for each in engine.memory.add(given, scope=scope, collection=collection))
        for source, given_documents in documents.items():
            done = engine.documents.add(given_documents, source=source, collection=collection)
            yield from (each.outcome for each in done)


def _picture(report: ImportReport) -> RenderableType:
    counts = ", ".join(f"{getattr(report, name):,} {name}" for name in OUTCOMES)
    skipped = sum(each.count for each in report.skipped.values())
    parts: list[RenderableType] = [f"{report.read:,} read: {counts}, {skipped:,} skipped"]
    if report.vectors_kept or report.vectors_computed:
        parts.append(f"vectors: {report.vectors_kept:,} kept, {report.vectors_computed:,} computed again")
    if report.skipped:
        rows = ((each.count, reason, each.names) for reason, each in report.skipped.items())
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

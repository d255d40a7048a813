"""Commands: their options, engine and output."""

import inspect
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NoReturn,
    Protocol,
    TypedDict,
    cast,
    get_args,
    get_type_hints,
)

import typer
from rich.console import RenderableType

from conspectus.cli.declared import resolve_annotation
from conspectus.cli.errors import NOTHING, report_errors
from conspectus.cli.options import Common, Selection
from conspectus.cli.output import note, show
from conspectus.errors import ConspectusError, InvalidInput, NotFound
from conspectus.model.filter import And, Eq, Filter, In, Not, Or, Scalar
from conspectus.model.filter_json import parse_filters
from conspectus.model.memory import MEMORY, MemoryWritten
from conspectus.model.quarantine import quarantine_notice
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import Written
from conspectus.model.reports import READING
from conspectus.settings import Settings, UnknownSetting
from conspectus.text.counts import format_count
from conspectus.web.warmup import freeze_gc

if TYPE_CHECKING:
    from conspectus.ports import Progress
    from conspectus.sync import BlockingEngine

MAX_NOTICES: Final = 10
MAX_NAMES: Final = 5
"""Names in one line of a notice."""
PROGRAM: Final = "conspectus"


class Paged(Protocol):
    """A page of results."""

    @property
    def next(self) -> object:
        """The cursor of the next page, if there is one."""


class Session:
    """The common options of a command, and its engine, which is opened on first use.

    A store is only created by a command that writes: one with `new`. `usual` is the collection of commands
    that do not use the default one.
    """

    def __init__(self, common: Common, closing: ExitStack, *, new: bool = False, usual: str = "") -> None:
        self.common = common
        self.json = common.json
        self.new = new
        self.unread_files = ""
        self._usual = usual
        self._closing = closing

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment; unknown variables are noted. Raises InvalidInput."""
        with warnings.catch_warnings(record=True) as unknown:
            warnings.simplefilter("always", UnknownSetting)
            settings = Settings.from_environment()
        self.note(*(str(warning.message) for warning in unknown))
        return settings

    @cached_property
    def engine(self) -> "BlockingEngine":
        """The local or remote engine. Raises NotFound for a folder or database without data."""
        with freeze_gc():
            from conspectus import bootstrap, sync

        if url := self.url:
            return self._closing.enter_context(sync.connect(url, settings=self.settings))
        path = bootstrap.absolute(self.common.data_dir or self.settings.path)
        if not self.new:
            bootstrap.require_store(path, settings=self.settings)
        return self._closing.enter_context(sync.open(path, settings=self.settings))

    @property
    def url(self) -> str:
        """The URL of the server, if given. Raises InvalidInput if a data directory is given as well."""
        if self.common.url is not None and self.common.data_dir is not None:
            raise InvalidInput("url", "give either --url or --data-dir")
        return self.common.url or (self.settings.url if self.common.data_dir is None else "")

    @cached_property
    def collection(self) -> str:
        """The given collection, or the usual one."""
        default = self.settings.default_collection
        is_set = default != Settings().default_collection
        return self.common.collection or (default if is_set else self._usual or default)

    def build_filter(self, selection: Selection) -> Filter:
        """Return the filter of a selection, with the names of sources replaced by their ids.

        In a search of all collections a name may belong to several sources, so names are not replaced.
        """
        sources = (
            ()
            if self.collection == EVERYWHERE or not (selection.filter or selection.source)
            else self.engine.collections.list_sources(collection=self.collection)
        )
        ids = {source.name: str(source.id) for source in sources}
        condition = _with_source_ids(parse_filters(selection.filter), ids)
        if selection.source is None:
            return condition
        source = _source_id(selection.source, ids)
        if source not in ids.values():
            raise NotFound("source", selection.source)
        return And((condition, Eq("source", source)))

    def require_here(self) -> None:
        """Raise InvalidInput if a server is given for a command that works on this machine."""
        if self.common.url is not None:
            raise InvalidInput("url", "this command does not work with a server; use --data-dir")

    def show(self, value: object, picture: RenderableType, *, matches: object = True) -> None:
        """Print a value as JSON or in readable form. Without `matches`, exit with the code for no results."""
        show(value, picture, as_json=self.json)
        if not matches:
            self.end_with_nothing()

    def show_or_exit(
        self, value: object, picture: RenderableType, nothing: str, *, matches: Sequence[object] | None = None
    ) -> None:
        """Print `value`, or its items; without any, exit with the code for no results."""
        matches = cast(Sequence[object], value) if matches is None else matches
        if matches or self.json:
            self.show(value, picture)
        if not matches:
            self.end_with_nothing(nothing)

    def show_page(self, page: Paged, table: RenderableType, nothing: str | None = None) -> None:
        """Print a page and how to list the next one. With a remark on an empty page, exit after it."""
        self.show(page, table)
        self.note_next(page)
        if nothing is not None:
            self.end_with_nothing(nothing)

    def note_next(self, page: Paged) -> None:
        """Print how to list the next page, if there is one."""
        if page.next:
            self.note(f"next page: --after {page.next}")

    def note(self, *texts: str) -> None:
        """Print remarks to stderr, unless the output is JSON."""
        for text in () if self.json else texts:
            note(text)

    def note_by_name(self, notices: Mapping[str, str]) -> None:
        """Print notices of files and the like; equal ones are one line with a count and the first names."""
        names_by_notice: dict[str, list[str]] = {}
        for name, notice in notices.items():
            names_by_notice.setdefault(notice, []).append(name)
        self.note_first([_notice_line(names, notice) for notice, names in names_by_notice.items()])

    def note_interrupted(self) -> None:
        """Print what an interrupted command has stored, what remains, and how to go on."""
        if not self.new or "engine" not in vars(self):
            return
        again = f"{self.unread_files}go on: {shlex.join((PROGRAM, *sys.argv[1:]))}"
        with suppress(ConspectusError):
            for status in self.engine.maintenance.status().collections:
                if status.name == self.collection:
                    stored = f"stored in {status.name!r}: {format_count(status.documents, 'document')}"
                    remains = f"pending: {status.pending:,} of {format_count(status.chunks, 'vector')}"
                    self.note(f"{stored}, {remains}; what is stored is not added twice; {again}")
                    return
            self.note(f"nothing is stored in {self.collection!r}; {again}")

    def follow_files(self, report: "Progress") -> "Progress":
        """Return `report`, with which `note_interrupted` also knows how many files were not read yet."""

        def follow(work: str, done: int, total: int) -> None:
            if work == READING:
                unread = f"{total - done:,} of {format_count(total, 'file')} were not read; "
                self.unread_files = unread if done < total else ""
            report(work, done, total)

        return follow

    def note_first(self, notices: Sequence[str]) -> None:
        """Print the first of many notices with `note`."""
        self.note(*notices[:MAX_NOTICES])
        if len(notices) > MAX_NOTICES:
            self.note(f"and {format_count(len(notices) - MAX_NOTICES, 'more notice')}; --json lists all")

    def note_quarantined(self, written: Sequence[Written | MemoryWritten]) -> None:
        """Name the first texts that are quarantined, with the pattern of each."""
        findings = ((document.id, document.quarantined) for document in written)
        notices = [f"{name}: {quarantine_notice(why)}" for name, why in findings if why is not None]
        self.note_first(notices)
        if notices:
            self.note(f"review: conspectus quarantine list --collection {self.collection}")

    def end_with_nothing(self, *texts: str) -> NoReturn:
        """Exit, after remarks, with the code for no results."""
        self.note(*texts)
        raise typer.Exit(NOTHING)


class Opening(TypedDict, total=False):
    """Differences from the usual session of a command."""

    new: bool
    usual: str


NewSession = Annotated[Session, Opening(new=True)]
MemorySession = Annotated[Session, Opening(usual=MEMORY)]
NewMemorySession = Annotated[Session, Opening(new=True, usual=MEMORY)]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its dataclass parameters as parameters, for Typer.

    Its session replaces the common options. A ConspectusError ends it with a message and an exit code.
    """
    hints = get_type_hints(command, include_extras=True)
    opening: Opening = next(iter(get_args(hints["session"])[1:]), Opening())
    bundles = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    bundles["session"] = Common

    def call(ctx: typer.Context, **arguments: Any) -> None:
        for name, bundle in bundles.items():
            arguments[name] = bundle(**{option.name: arguments.pop(option.name) for option in fields(bundle)})
        common: Common = arguments.pop("session").within(ctx.obj)
        with report_errors(as_json=common.json), _open_session(common, opening) as session:
            command(session=session, **arguments)

    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in bundles:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=resolve_annotation(hints[name])))
        else:
            parameters.extend(_options(bundles[name]))
    vars(call).update(__signature__=inspect.Signature(parameters))
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def _options(bundle: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    return [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if option.default is MISSING else option.default,
            annotation=resolve_annotation(hints[option.name]),
        )
        for option in fields(bundle)
    ]


@contextmanager
def _open_session(common: Common, opening: Opening) -> Iterator[Session]:
    with ExitStack() as closing:
        session = Session(common, closing, **opening)
        try:
            yield session
        except KeyboardInterrupt:
            session.note_interrupted()
            raise
        except NotFound as missing:
            if missing.kind == "collection" and session.collection == MEMORY:
                note("no memories yet; `conspectus memory add TEXT` stores one")
            elif missing.kind == "collection":
                there = ", ".join(collection.name for collection in session.engine.collections.list())
                note(f"existing collections: {there or 'none'}")
            raise


def _notice_line(names: Sequence[str], notice: str) -> str:
    if len(names) == 1:
        return f"{names[0]}: {notice}"
    shown = ", ".join(names[:MAX_NAMES])
    return f"{format_count(len(names), 'file')}: {notice} ({shown}{', …' if len(names) > MAX_NAMES else ''})"


def _with_source_ids(condition: Filter, ids: dict[str, str]) -> Filter:
    match condition:
        case Not():
            return Not(_with_source_ids(condition.inner, ids))
        case And():
            return And(tuple(_with_source_ids(part, ids) for part in condition.inner))
        case Or():
            return Or(tuple(_with_source_ids(part, ids) for part in condition.inner))
        case Eq(field="source"):
            return replace(condition, value=_source_id(condition.value, ids))
        case In(field="source"):
            return replace(condition, values=tuple(_source_id(value, ids) for value in condition.values))
        case _:
            return condition


def _source_id(name: Scalar, ids: dict[str, str]) -> Scalar:
    full_path = str(Path(str(name)).absolute())
    return ids.get(str(name)) or ids.get(full_path) or name

"""Experiments: question sets, and runs that measure how much of their evidence reaches a window."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Annotated, Any, Final, TypedDict, cast

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.checks import Checked
from conspectus.model.filter import Filter
from conspectus.model.filter_json import filter_from_json, filter_to_json
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import CollectionId, JobId
from conspectus.model.parameters import (
    MAX_KEY,
    AskedQuery,
    Name,
    QueryText,
    StoredCollection,
    StoredId,
    StoredKey,
    StoredTitle,
)
from conspectus.model.query import Query, QueryContext, Retriever
from conspectus.model.records import Metadata
from conspectus.model.trust import MinTrust

MAX_EVIDENCE: Final = 100
"""Largest number of pieces of evidence of a question."""
MAX_QUESTIONS: Final = 1_000
"""Largest number of questions of a set."""
RUN_BUDGETS: Final = (128, 256, 512, 1024)
"""Tokens of the windows of a run that names none."""
DEFAULT_OPTIONS: Final = (
    "min_similarity", "min_confidence", "retrievers", "rerank", "query_context", "thread_messages", "graph",
    "current",
)  # fmt: skip
"""The options of a run that can be the defaults of a collection; of `query_context`, the profile."""


class RunQueryOptions(TypedDict, total=False):
    """The options of the queries of a run: those of Query, without what a set or its questions decide."""

    filter: Filter
    limit: int
    min_similarity: float | None
    min_confidence: float
    retrievers: tuple[Retriever, ...]
    rerank: bool
    query_context: QueryContext | None
    thread_messages: int
    as_of: datetime | None
    graph: GraphExpansion | None
    min_trust: MinTrust | None
    current: bool


@dataclass(frozen=True, slots=True)
class RunQuery(Query):
    """The query of a run, whose text is that of each question."""

    query: QueryText = ""


@dataclass(frozen=True, slots=True)
class NewEvidence(Checked):
    """Characters of a document that answer a question, from `start` to before `end`."""

    document: Annotated[str, Length(1, MAX_KEY), "Id or key of a document.", Example("backup.md")]
    start: Annotated[int, Range(0), "First character.", Example(0)]
    end: Annotated[int, Range(1), "Character after the last one.", Example(24)]


@dataclass(frozen=True, slots=True)
class NewQuestion(Checked):
    """A question with its evidence; it replaces the question of the set with the same `key`."""

    query: QueryText
    evidence: Annotated[tuple[NewEvidence, ...], Length(1, MAX_EVIDENCE), "What answers the question."]
    key: Annotated[Name, "Name of the question in its set; by default its text.", Example("q1")] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters of a document that answer a question; `key` and `title` are those that it has now."""

    document: StoredId
    start: int
    end: int
    key: StoredKey = ""
    title: StoredTitle = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a set. It is `changed` if a document of its evidence is another one by now."""

    id: StoredId
    key: Annotated[str, Example("q1")]
    query: AskedQuery
    evidence: tuple[Evidence, ...]
    changed: bool = False


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set of questions about one collection."""

    id: StoredId
    collection: StoredCollection
    name: Annotated[str, Example("support")]
    created: datetime
    questions: Annotated[int, "Number of its questions."] = 0


@dataclass(frozen=True, slots=True)
class QuestionSetPage:
    """Question sets, newest first; `next` is the cursor of the page after this one, if any."""

    sets: tuple[QuestionSet, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class QuestionSetContent:
    """A set with the questions whose documents you may read."""

    set: QuestionSet
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class RunFigure:
    """The mean share of the evidence in the windows of a budget, in percent, with its 95 % interval."""

    max_tokens: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a set; `options` are those that differ from what a search does without options.

    `job` asks the questions: it has the progress, is cancelled, and goes on where it stopped if it is
    retried. Until it ends there are no `figures`. `tokens` and `milliseconds` are those of all windows.
    """

    id: StoredId
    set: StoredId
    collection: StoredCollection
    name: Annotated[str, Example("keywords")]
    created: datetime
    job: JobId
    options: Annotated[Metadata, Example({"retrievers": ["keyword"]})]
    max_tokens: tuple[int, ...]
    figures: tuple[RunFigure, ...] = ()
    questions: Annotated[int, "Number of questions that were asked."] = 0
    tokens: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first; `next` is the cursor of the page after this one, if any."""

    runs: tuple[Run, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Passage:
    """Characters of a document in a window; `key` and `title` are those that the document has now."""

    document: StoredId
    start: int
    end: int
    key: StoredKey = ""
    title: StoredTitle = ""


@dataclass(frozen=True, slots=True)
class RunWindow:
    """A window of a question: its budget and tokens, the share of the evidence in it, and its passages.

    Passages of documents that you may not read, or that were deleted, are left out.
    """

    max_tokens: int
    tokens: int
    milliseconds: float
    share: Annotated[float, "Share of the evidence in the window, from 0 to 1."]
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionShares:
    """A question with the share of its evidence, from 0 to 1, in the window of each budget."""

    question: StoredId
    key: Annotated[str, Example("q1")]
    query: AskedQuery
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run with its questions; the shares are in the order of `max_tokens` of the run."""

    run: Run
    questions: tuple[QuestionShares, ...]


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question of a run with its windows; none before it was asked."""

    question: Question
    windows: tuple[RunWindow, ...]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run and the collection of its set."""

    run: Run
    collection: CollectionId


def run_options_to_json(options: RunQueryOptions) -> Metadata:
    """Return the options that differ from those of a query without options."""
    built_in = _built_in()
    return {name: _option_to_json(option) for name, option in options.items() if option != built_in[name]}


def run_options_from_json(stored: Metadata) -> RunQueryOptions:
    """Return the options that `run_options_to_json` stored."""
    return cast(RunQueryOptions, {name: _option_from_json(name, option) for name, option in stored.items()})


def default_options(options: Metadata) -> Metadata:
    """Return the options of a run as the defaults of a collection.

    Raises InvalidInput for an option that decides what is searched, and not how.
    """
    unsuitable = sorted(name for name in options if name not in DEFAULT_OPTIONS)
    query_context = options.get("query_context")
    if isinstance(query_context, dict) and query_context.keys() - {"profile"}:
        unsuitable.append("query_context")
    if unsuitable:
        raise InvalidInput("run", f"{unsuitable[0]} cannot be a default; run the set without it")
    return options


def with_default_options(query: Query, defaults: Metadata) -> Query:
    """Return the query with the defaults of its collection where its options are the built-in ones."""
    built_in = _built_in()
    options: Mapping[str, Any] = run_options_from_json(defaults)
    changes: dict[str, Any] = {
        name: options[name]
        for name in DEFAULT_OPTIONS
        if name in options and getattr(query, name) == built_in[name]
    }
    default_context = options.get("query_context")
    if default_context is not None:
        own_context = query.query_context or QueryContext()
        if own_context.profile == QueryContext().profile:
            changes["query_context"] = replace(own_context, profile=default_context.profile)
    return replace(query, **changes) if changes else query


def _built_in() -> Mapping[str, Any]:
    """Return the built-in options of a query by name."""
    return {field.name: field.default for field in fields(Query)}


def _option_to_json(option: Any) -> Any:
    match option:
        case QueryContext() | GraphExpansion():
            built_in = asdict(type(option)())
            return {
                name: _option_to_json(member)
                for name, member in asdict(option).items()
                if member != built_in[name]
            }
        case datetime():
            return option.isoformat()
        case tuple():
            return list(option)
        case str() | bool() | int() | float() | None:
            return option
        case _:
            return filter_to_json(option)


def _option_from_json(name: str, stored: Any) -> Any:
    match name:
        case "filter":
            return filter_from_json(stored)
        case "retrievers":
            return tuple(stored)
        case "as_of":
            return None if stored is None else datetime.fromisoformat(stored)
        case "query_context":
            members = dict(stored)
            if members.get("at") is not None:
                members["at"] = datetime.fromisoformat(members["at"])
            return QueryContext(**members)
        case "graph":
            graphs = stored.get("graphs")
            return GraphExpansion(**{**stored, "graphs": None if graphs is None else tuple(graphs)})
        case _:
            return stored

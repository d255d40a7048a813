"""Options of several commands. Dataclasses are expanded into the signatures of commands."""

from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from conspectus.cli.agent_hook import agent_name, project_root
from conspectus.cli.declared import argument, option
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model import parameters
from conspectus.model.graph import GraphExpansion
from conspectus.model.memory import Scope
from conspectus.model.query import Budget, QueryContext, WindowForm
from conspectus.model.query import Query as RetrievedQuery
from conspectus.model.trust import MinTrust
from conspectus.text.times import parse_instant

Query = Annotated[str, argument(parameters.QueryText, metavar="QUERY")]
MaxTokens = Annotated[int, option(Budget, "max_tokens")]
Limit = Annotated[int, option(parameters.PageLimit, "", "--limit", "-n")]
HitLimit = Annotated[int, option(parameters.HitLimit, "", "--limit", "-n")]
Wait = Annotated[bool, option(parameters.Wait, "", "--wait/--no-wait")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]
Purge = Annotated[bool, option(parameters.Purge, "", "--purge")]
DryRun = Annotated[bool, option(parameters.DryRun, "", "--dry-run")]
MinSimilarity = Annotated[float | None, option(parameters.MinSimilarity)]
MinConfidence = Annotated[float, option(parameters.MinConfidence)]
MinTrustOption = Annotated[MinTrust | None, option(parameters.LowestTrust, "", "--min-trust")]
Tokenizer = Annotated[str, option(Budget, "tokenizer")]
Format = Annotated[
    Literal["text", "xml", "json", "messages", "guarded"], option(WindowForm, "format", "--format")
]
Instant = Annotated[str | None, option(QueryContext, "at")]
AsOf = Annotated[str | None, option(parameters.AsOf)]
ProjectPath = Annotated[
    Path | None, typer.Option("--project", help="Folder of a Git project, in place of an agent.")
]
Filter = Annotated[
    list[str],
    typer.Option("--filter", help="field=value, field~=part, occurred=START..END or JSON; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Common:
    """The store, and the output format. These options may also precede the command."""

    data_dir: Annotated[
        str | None, typer.Option(help="Data directory or database URL (default: CONSPECTUS_PATH).")
    ] = None
    collection: Annotated[
        str | None, typer.Option(help="Collection (default: CONSPECTUS_DEFAULT_COLLECTION).")
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False
    url: Annotated[str | None, typer.Option(help="URL of a Conspectus server (default: CONSPECTUS_URL).")] = (
        None
    )

    def within(self, outer: object) -> "Common":
        """Return these options, with defaults from those that precede the command."""
        if not isinstance(outer, Common):
            return self
        store = outer if self.data_dir is None and self.url is None else self
        return Common(store.data_dir, self.collection or outer.collection, self.json or outer.json, store.url)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Whether a deletion is confirmed."""

    yes: Yes = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Options that select documents."""

    filter: Filter = field(default_factory=list)
    source: Annotated[str | None, typer.Option(help="Name or path of a source.")] = None


@dataclass(frozen=True, slots=True)
class Searched(Selection):
    """Filters and limits of a search."""

    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None
    current: Annotated[bool, option(RetrievedQuery, "current")] = False


@dataclass(frozen=True, slots=True)
class Situated(Searched):
    """Filters and limits of a search, and the channel and time of the query."""

    channel: Annotated[str | None, option(QueryContext, "channel")] = None
    thread: Annotated[str | None, option(QueryContext, "thread")] = None
    at: Instant = None
    profile: Annotated[str | None, option(QueryContext, "profile")] = None

    def query_context(self) -> QueryContext | None:
        """Return the query context; None without any of these options."""
        if (self.channel, self.thread, self.at, self.profile) == (None,) * 4:
            return None
        return QueryContext(
            self.channel, self.thread, instant(self.at), self.profile or QueryContext().profile
        )


@dataclass(frozen=True, slots=True)
class Connected(Situated):
    """All options of a search: also the retrievers, among them the graph."""

    retriever: Annotated[
        Literal["keyword", "vector"] | None, typer.Option(help="Use only this retriever (default: both).")
    ] = None
    rerank: Annotated[bool, option(RetrievedQuery, "rerank")] = True
    graph: Annotated[bool, typer.Option("--graph", help="Include graph retrieval.")] = False
    alpha: Annotated[float | None, option(GraphExpansion, "alpha")] = None
    hops: Annotated[int | None, option(GraphExpansion, "hops")] = None
    as_of: AsOf = None

    def fields(self) -> dict[str, Any]:
        """Return the options of the retrievers as arguments of the engine. Raises InvalidInput."""
        graph: GraphExpansion | None = None
        if self.graph:
            default = GraphExpansion()
            graph = GraphExpansion(
                default.alpha if self.alpha is None else self.alpha,
                default.hops if self.hops is None else self.hops,
            )
        elif (self.alpha, self.hops) != (None, None):
            raise InvalidInput("hops" if self.alpha is None else "alpha", "needs --graph")
        only = {} if self.retriever is None else {"retrievers": (self.retriever,)}
        return {"graph": graph, "as_of": instant(self.as_of), "rerank": self.rerank, **only}


@dataclass(frozen=True, slots=True)
class InScope:
    """A memory scope."""

    user: Annotated[str | None, option(Scope, "user")] = None
    agent: Annotated[str | None, option(Scope, "agent")] = None
    conversation: Annotated[str | None, option(Scope, "conversation")] = None
    project: ProjectPath = None

    def scope(self) -> Scope:
        """Return the scope. Raises InvalidInput for both an agent and a project."""
        return Scope(self.user, agent_of(self.agent, self.project), self.conversation)

    def arguments(self, collection: str) -> dict[str, Any]:
        """Return the scope and the collection as arguments of the engine."""
        return {"scope": self.scope(), "collection": collection}


def instant(text: str | None) -> datetime | None:
    """Parse a time, if given. Raises InvalidInput."""
    return None if text is None else parse_instant(text)


def agent_of(agent: str | None, project: Path | None) -> str | None:
    """Return the agent of a memory scope: the given one, or that of a project. Raises InvalidInput."""
    if agent is not None and project is not None:
        raise InvalidInput("project", "give either --agent or --project")
    return agent if project is None else agent_name(project_root(str(project)))

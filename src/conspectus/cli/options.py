"""Options of several commands. Dataclasses are expanded into the signatures of commands."""

from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from conspectus.cli.agent_hook import agent_name, project_root
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import QueryContext
from conspectus.model.trust import MinTrust
from conspectus.text.times import parse_instant

Query = Annotated[str, typer.Argument(metavar="QUERY", help="Text to search for.")]
MaxTokens = Annotated[int, typer.Option(min=0, help="Maximum number of tokens.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")]
PageLimit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000, help="Maximum number of results.")]
After = Annotated[str | None, typer.Option(help="Cursor of the next page.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until embeddings are computed.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]
Purge = Annotated[bool, typer.Option("--purge", help="Wait until the text is erased from disk.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted. Delete nothing.")]
MinSimilarity = Annotated[float | None, typer.Option(help="Minimum cosine similarity (0 to 1).")]
MinConfidence = Annotated[
    float, typer.Option(min=0, max=1, help="Minimum probability that the results hold the answer (0 to 1).")
]
MinTrustOption = Annotated[
    MinTrust | None, typer.Option("--min-trust", help="Minimum trust: trusted, standard or untrusted.")
]
Tokenizer = Annotated[str, typer.Option(help="o200k_base, cl100k_base, hf:PATH or an estimator.")]
Format = Annotated[
    Literal["text", "xml", "json", "messages", "guarded"],
    typer.Option("--format", help="Output format; text is numbered for citation, guarded as in a chat."),
]
Instant = Annotated[str | None, typer.Option(help="Time of the query in ISO 8601 (default: now).")]
AsOf = Annotated[str | None, typer.Option(help="Use the state known at this ISO 8601 time (default: now).")]
Source = Annotated[str | None, typer.Option(help="Source to add to.")]
ProjectPath = Annotated[
    Path | None, typer.Option("--project", help="Folder of a Git project, in place of an agent.")
]
Filter = Annotated[
    list[str], typer.Option("--filter", help="field=value, occurred=START..END or a JSON filter; repeatable.")
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
class Selection:
    """A set of documents."""

    filter: Filter = field(default_factory=list)
    source: Annotated[str | None, typer.Option(help="Name or path of a source.")] = None


@dataclass(frozen=True, slots=True)
class Searched(Selection):
    """Filters and limits of a search."""

    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None


@dataclass(frozen=True, slots=True)
class Situated(Searched):
    """Also the place and time of the query."""

    channel: Annotated[str | None, typer.Option(help="Channel of the query (name or id).")] = None
    thread: Annotated[str | None, typer.Option(help="Thread of the query in the channel.")] = None
    at: Instant = None
    profile: Annotated[str | None, typer.Option(help="Score profile: default or multiplicative.")] = None

    def query_context(self) -> QueryContext | None:
        """Return the query context; None without any of these options."""
        if (self.channel, self.thread, self.at, self.profile) == (None,) * 4:
            return None
        return QueryContext(
            self.channel, self.thread, instant(self.at), self.profile or QueryContext().profile
        )


@dataclass(frozen=True, slots=True)
class Connected(Situated):
    """Also the retrievers, among them the graph."""

    retriever: Annotated[
        Literal["keyword", "vector"] | None, typer.Option(help="Use only this retriever (default: both).")
    ] = None
    rerank: Annotated[bool, typer.Option(help="Rerank the hits, where a reranker is set.")] = True
    graph: Annotated[bool, typer.Option("--graph", help="Include graph retrieval.")] = False
    alpha: Annotated[
        float | None, typer.Option(help="Weight of the graph, 0 to 1; needs --graph (default: 0.5).")
    ] = None
    hops: Annotated[int | None, typer.Option(help="Number of graph hops; needs --graph (default: 2).")] = None
    as_of: AsOf = None

    def fields(self) -> dict[str, Any]:
        """Return keyword arguments of the engine. Raises InvalidInput."""
        usual = GraphExpansion()
        if not self.graph and (self.alpha, self.hops) != (None, None):
            raise InvalidInput("hops" if self.alpha is None else "alpha", "needs --graph")
        alpha = usual.alpha if self.alpha is None else self.alpha
        ask = GraphExpansion(alpha, usual.hops if self.hops is None else self.hops) if self.graph else None
        only = {} if self.retriever is None else {"retrievers": (self.retriever,)}
        return {"graph": ask, "as_of": instant(self.as_of), "rerank": self.rerank, **only}


def instant(text: str | None) -> datetime | None:
    """Parse a time, if given. Raises InvalidInput."""
    return None if text is None else parse_instant(text)


def agent_of(agent: str | None, project: Path | None) -> str | None:
    """Return the agent of a memory scope: the given one, or that of a project. Raises InvalidInput."""
    if agent is not None and project is not None:
        raise InvalidInput("project", "give either --agent or --project")
    return agent if project is None else agent_name(project_root(str(project)))

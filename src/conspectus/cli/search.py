"""search, context, explain and feedback."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.command import Command
from conspectus.cli.declared import option
from conspectus.cli.options import Connected, Format, HitLimit, MaxTokens, Query, Tokenizer
from conspectus.cli.output import cell, dump, make_plain_table, record_fields, rows_table, write
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.ids import is_uuid
from conspectus.model.parameters import DEFAULT_HITS
from conspectus.model.query import DEFAULT_WINDOW_TOKENS, EVERYWHERE, Budget, WindowForm
from conspectus.model.records import reading_mark
from conspectus.model.results import (
    ContextWindow,
    Feedback,
    Hit,
    QueryTerms,
    Retrieval,
    TraceEntry,
    WindowPart,
)
from conspectus.text.counts import format_count
from conspectus.text.document_names import name_with_key

if TYPE_CHECKING:
    from conspectus.window.focus import Focus

EXPLAIN: Final = "engine.search:SearchService.explain"
FOR_MERGES: Final = frozenset({"terms", "nearest", "signals", "threads"})
"""Fields of a retrieval for merges and windows, which are not printed."""
SNIPPET_LENGTH = 240
"""Characters of a hit that are shown."""
EIGHTHS = " ▏▎▍▌▋▊▉"
"""A cell of a bar, filled by 0 to 7 eighths."""
BAR_CELLS = 10
MAX_TRIED = 1 << 17
"""The largest budget that is tried to find the smallest one with text."""
STATUS_STYLES = {
    "included": "green",
    "truncated": "yellow",
    "duplicate": "dim",
    "near_duplicate": "dim",
    "below_min_similarity": "red",
    "below_min_confidence": "red",
    "below_min_trust": "red",
    "over_budget": "cyan",
}


@dataclass(frozen=True, slots=True)
class Reserve:
    """Options of the budget: other contents, and the tokenizer."""

    tokenizer: Tokenizer = "o200k_base"
    system: Annotated[str, option(Budget, "system")] = ""
    reserve_tokens: Annotated[int, option(Budget, "reserved_tokens")] = 0
    count_query: Annotated[
        bool, typer.Option("--count-query", help="Count the query against the budget, too.")
    ] = False

    def budget(self, max_tokens: int, query: str) -> Budget:
        """Return the budget of a query."""
        counted = query if self.count_query else ""
        return Budget(max_tokens, self.tokenizer, self.system, counted, self.reserve_tokens)


@dataclass(frozen=True, slots=True)
class Shown:
    """Options of the text of a window."""

    form: Format = "text"
    previous: Annotated[str | None, option(WindowForm, "previous")] = None


@dataclass(frozen=True, slots=True)
class Listed:
    """Options that select the listed candidates."""

    document: Annotated[str | None, option(EXPLAIN, "document")] = None
    fits_from: Annotated[bool, option(EXPLAIN, "fits_from", "--fits-from")] = False
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of candidates in the table.")
    ] = 20
    user: Annotated[str | None, option("engine.search:SearchService.explain_as", "user", "--as")] = None


def search(query: Query, session: Session, searched: Connected, *, limit: HitLimit = DEFAULT_HITS) -> None:
    """Search with keyword and vector search."""
    retrieval = session.engine.retrieve(query, **_scope(session, searched), limit=limit)
    sources = (
        ()
        if session.collection == EVERYWHERE or not retrieval.hits
        else session.engine.collections.list_sources(collection=session.collection)
    )
    names = {str(source.id): source.name for source in sources}
    session.show(record_fields(retrieval, without=FOR_MERGES), hits_picture(retrieval, query, names))
    _finish(session, retrieval)


def context(
    query: Query,
    session: Session,
    searched: Connected,
    *,
    max_tokens: MaxTokens = DEFAULT_WINDOW_TOKENS,
    reserve: Reserve,
    text: Shown,
) -> None:
    """Print the context window for a query."""
    scope = _scope(session, searched)

    def open_window(maximum: int) -> ContextWindow:
        return session.engine.window(
            query,
            reserve.budget(maximum, query),
            format=text.form,
            parts=session.json,
            previous=text.previous,
            **scope,
        )

    window = open_window(max_tokens)
    if window.outcome == "found":
        require_nonempty(
            max_tokens, lambda maximum: open_window(maximum).tokens > 0, has_text=window.tokens > 0
        )
    print_window(session, window, window, text.form)
    _finish(session, window)


def explain(
    query: Query,
    session: Session,
    searched: Connected,
    *,
    max_tokens: MaxTokens = DEFAULT_WINDOW_TOKENS,
    reserve: Reserve,
    listed: Listed,
) -> None:
    """Show the score and status of every candidate."""
    budget = reserve.budget(max_tokens, query)
    if listed.user is not None:
        _explain_as(session, query, budget, listed, _scope(session, searched))
        return
    window = session.engine.explain(
        query, budget, document=listed.document, fits_from=listed.fits_from, **_scope(session, searched)
    )
    session.show(window, trace_table(window, listed.limit))
    more = len(window.trace) - listed.limit
    if more > 0:
        session.note(f"{format_count(more, 'more candidate')}: --limit {len(window.trace)}")
    _finish(session, window)


def _feedback_table(judgments: Sequence[Feedback]) -> RenderableType:
    rows = (
        (
            judgment.id,
            "used" if judgment.used else "wrong",
            str(judgment.chunk),
            judgment.query,
            str(judgment.user),
        )
        for judgment in judgments
    )
    return rows_table(("id", "judgment", "chunk", "query", "user"), rows)


def _explain_as(
    session: Session, query: str, budget: Budget, listed: Listed, scope: Mapping[str, Any]
) -> None:
    """Show the candidates of another user, and the grants that they lack."""
    if listed.document is not None or listed.fits_from:
        raise InvalidInput("as", "cannot be combined with --document or --fits-from")
    explanation = session.engine.search.explain_as(query, budget, user=listed.user or "", **scope)
    missing = (
        (
            grant.source_name,
            grant.role if grant.viewers is None else f"viewer at the remote: {', '.join(grant.viewers)}",
            str(grant.candidates),
            str(grant.passages),
        )
        for grant in explanation.missing_grants
    )
    table = rows_table(("source", "missing role", "candidates", "in your window"), missing)
    session.show(explanation, Group(trace_table(explanation.window, listed.limit), table))
    _finish(session, explanation.window)


def print_window(session: Session, answer: object, window: ContextWindow, form: str = "text") -> None:
    """Print a window on stdout and its tokens on stderr, or all of it as JSON."""
    if session.json:
        dump(answer)
    elif form == "messages":
        dump(window.messages)
    elif window.text:
        write(window.text)
    session.note(f"{window.tokens:,} of {format_count(window.max_tokens, 'token')}")


def require_nonempty(tokens: int, shows: Callable[[int], bool], *, has_text: bool) -> None:
    """Raise InvalidInput, with the minimum, if a window is empty because of its token budget."""
    if has_text:
        return
    enough = max(tokens, 1)
    while not shows(enough):
        if enough > MAX_TRIED:
            raise InvalidInput("max_tokens", f"{tokens} is too small for any passage; raise it")
        enough *= 2
    least = bisect_left(range(enough), True, lo=tokens, key=shows)
    raise InvalidInput("max_tokens", f"{tokens} is too small for any passage; the minimum is {least}")


def bar(share: float) -> str:
    """Return a bar of ten cells, filled by a fraction from 0 to 1."""
    eighths = round(min(1.0, max(0.0, share)) * BAR_CELLS * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(BAR_CELLS)


def hits_picture(retrieval: Retrieval, query: str, sources: Mapping[str, str]) -> RenderableType:
    """Return each hit with score, ratio to the best one, document, location, and a snippet below.

    `sources` are names of sources by id.
    """
    from conspectus.window.focus import Focus

    best = max((hit.score for hit in retrieval.hits), default=0.0)
    focus = Focus(retrieval.terms or _terms(retrieval, query), retrieval.nearest)
    lines: list[RenderableType] = []
    for number, hit in enumerate(retrieval.hits, 1):
        score = Text(bar(hit.score / best if best > 0 else 0.0), style="green")
        location = _location(hit, sources.get(hit.document.source, ""))
        head = [cell(str(number)), cell(f"{hit.score:.3f}"), score, _name(hit), location]
        lines += [Text("  ").join(part for part in head if part), Padding(snippet(hit, focus), (0, 0, 0, 3))]
    return Group(*lines)


def snippet(hit: Hit, focus: "Focus") -> Text:
    """Return the sentences of a hit around the best match."""
    from conspectus.window.focus import run_around_best

    text, sentences = hit.chunk.text, focus.sentences(hit)
    if not sentences or len(text) <= SNIPPET_LENGTH:
        return cell(text, limit=SNIPPET_LENGTH)
    first, last = run_around_best(
        sentences, [sentence.end - sentence.start for sentence in sentences], SNIPPET_LENGTH - 2
    )
    before = "… " if sentences[first].start else ""
    after = " …" if sentences[last].end < len(text) else ""
    return cell(
        f"{before}{text[sentences[first].start : sentences[last].end].strip()}{after}", limit=SNIPPET_LENGTH
    )


def trace_table(window: ContextWindow, limit: int) -> RenderableType:
    """Return the first candidates with their parts, status and reason."""
    table = make_plain_table("#", "status", "tokens", "score", "parts", "title", "reason")
    for entry in window.trace[:limit]:
        table.add_row(
            str(entry.rank),
            Text(entry.status, style=STATUS_STYLES[entry.status]),
            str(entry.tokens),
            f"{entry.score:.3f}",
            cell(" ".join(f"{name} {value:+.3f}" for name, value in entry.parts.items())),
            cell(name_with_key(entry.title, entry.key) or entry.document, limit=60),
            cell(entry.reason + _describe_budget(entry)),
        )
    used = f"{window.tokens:,} of {format_count(window.max_tokens, 'token')} ({window.tokenizer})"
    return Group(table, Text(used), Text(budget_sum(window.parts)))


def _describe_budget(entry: TraceEntry) -> str:
    """Return which budget holds the candidate, as far as that is known."""
    if entry.fits_from is not None:
        return f"; fits from {entry.fits_from} on"
    return "" if entry.fits_above is None else f"; fits only above {entry.fits_above}"


def budget_sum(parts: Sequence[WindowPart]) -> str:
    """Return the tokens of a budget by kind, as a sum."""
    totals: dict[str, int] = {}
    for part in parts:
        totals[part.kind] = totals.get(part.kind, 0) + part.tokens
    return f"{' + '.join(f'{kind} {tokens}' for kind, tokens in totals.items())} = {sum(totals.values())}"


def _scope(session: Session, searched: Connected) -> dict[str, Any]:
    """Return the filters, and the place and time of the query, as arguments of the engine."""
    return {
        "collection": session.collection,
        "filter": session.build_filter(searched),
        "min_similarity": searched.min_similarity,
        "min_confidence": searched.min_confidence,
        "min_trust": searched.min_trust,
        "current": searched.current,
        "query_context": searched.query_context(),
        **searched.fields(),
    }


def _finish(session: Session, answer: Retrieval | ContextWindow) -> None:
    """Print notices; end the command if there is no match."""
    session.note(*answer.notices)
    if answer.outcome == "no_match":
        session.end_with_nothing("no match")


def _terms(retrieval: Retrieval, query: str) -> Mapping[str, QueryTerms]:
    """Return the query terms of all collections; a server does not send its own terms."""
    from conspectus.text.analyzer import analyzer_for

    words = QueryTerms("english", dict.fromkeys(analyzer_for("english").terms(query), 1.0))
    return {hit.document.collection: words for hit in retrieval.hits}


def _name(hit: Hit) -> Text:
    from conspectus.window.render import SUPERSEDED_BY
    from conspectus.window.stream_times import is_streamed, time_range

    name = cell(hit.document.title or hit.document.location, limit=60)
    if hit.superseded_by:
        name.append(f", superseded by {hit.superseded_by[0].name}", style="yellow")
    for relation in hit.relations:
        if not hit.superseded_by or not relation.startswith(SUPERSEDED_BY):
            name.append(f", {relation}", style="dim")
    if hit.through:
        name.append(f", via {' → '.join(hit.through)}", style="dim")
    page = "" if hit.chunk.page is None else f"p. {hit.chunk.page}"
    time = time_range(hit.document) if is_streamed(hit.document) else ""
    facts = filter(None, (page, time, reading_mark(hit.document.read_by)))
    return name.append("".join(f", {fact}" for fact in facts))


def _location(hit: Hit, source: str) -> Text:
    """Return the key or path of the document, unless it is a random id or shown already, and the source."""
    location = "" if is_uuid(hit.document.location) or not hit.document.title else hit.document.location
    text = f"{location} ({source})" if location and source else location or source
    return cell(text, limit=80, style="dim")


FEEDBACK_COMMANDS: Final = {
    "add": Command(
        "search:SearchService.add_feedback", "Say which chunks answer a query, and which do not.",
        _feedback_table,
    ),
    "list": Command(
        "search:SearchService.list_feedback", "List your feedback, newest first; managers see everyone's.",
        lambda page: _feedback_table(page.feedback), defaults={"limit": 20}, nothing="no feedback",
    ),
    "revoke": Command(
        "search:SearchService.revoke_feedback", "Delete feedback.", "revoked {feedback}",
        document={"revoked": "feedback"},
    ),
}  # fmt: skip

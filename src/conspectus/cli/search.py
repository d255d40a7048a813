"""search, context and explain."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from conspectus.cli.errors import NOTHING
from conspectus.cli.options import Common, Connected
from conspectus.cli.output import cell, dump, note, plain_table, show, write
from conspectus.cli.session import opened
from conspectus.errors import InvalidInput
from conspectus.model.ids import is_uuid
from conspectus.model.query import EVERYWHERE, Budget
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.text.analyzer import analyzer_for
from conspectus.text.sentences import sentences

Question = Annotated[str, typer.Argument(help="The question.")]
Tokens = Annotated[int, typer.Option(min=0, help="The budget, from which --system and --answer are paid.")]
Tokenizer = Annotated[str, typer.Option(help="Who counts: o200k_base, cl100k_base, hf:PATH or an estimator.")]
MOST_TRIED = 1 << 17
BAR = 10
SHOWN = 240
EIGHTHS = " ▏▎▍▌▋▊▉"
FATES = {
    "in": "green",
    "truncated": "yellow",
    "duplicate": "dim",
    "below_floor": "red",
    "over_budget": "cyan",
}


@dataclass(frozen=True, slots=True)
class Reserve:
    """What else the tokens have to pay for, and who counts them."""

    tokenizer: Tokenizer = "o200k_base"
    system: Annotated[str, typer.Option(help="System prompt that the tokens must also pay for.")] = ""
    answer: Annotated[int, typer.Option(min=0, help="Tokens kept free for the model's answer.")] = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """Which candidates are listed."""

    document: Annotated[str | None, typer.Option(help="Also show why this document is in or out.")] = None
    limit: Annotated[int, typer.Option(min=1, help="Most candidates in the table. --json has all.")] = 20


def search(
    question: Question,
    common: Common,
    looking: Connected,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Most hits.")] = 10,
) -> None:
    """Find the best passages, by words and by meaning."""
    with opened(common) as session:
        found = session.engine.retrieve(
            question,
            collection=session.collection,
            where=session.where(looking),
            floor=looking.floor,
            situation=looking.situation(),
            **looking.fields(),
            limit=limit,
        )
        sources = (
            () if session.collection == EVERYWHERE else session.engine.sources(collection=session.collection)
        )
    names = {str(each.id): each.name for each in sources}
    show(found, hits_table(found, question, names), as_json=common.json)
    _finish(found, common)


def context(
    question: Question,
    common: Common,
    looking: Connected,
    *,
    tokens: Tokens,
    reserve: Reserve,
    form: Annotated[
        Literal["text", "xml", "json", "messages", "guarded"], typer.Option("--format", help="Rendering.")
    ] = "text",
) -> None:
    """Print the context for a question that fits into a number of tokens, and nothing else."""
    with opened(common) as session:
        where = session.where(looking)

        def filled(most: int) -> ContextWindow:
            return session.engine.window(
                question,
                Budget(most, reserve.tokenizer, reserve.system, answer=reserve.answer),
                renderer=form,
                collection=session.collection,
                where=where,
                floor=looking.floor,
                situation=looking.situation(),
                **looking.fields(),
            )

        window = filled(tokens)
        if window.outcome == "found":
            require_shown(tokens, lambda most: filled(most).tokens > 0, shown=window.tokens > 0)
    if common.json:
        dump(window)
    elif form == "messages":
        dump(window.messages)
    elif window.text:
        write(window.text)
    if not common.json:
        note(f"{window.tokens} of {window.allowed} tokens")
    _finish(window, common)


def explain(
    question: Question,
    common: Common,
    looking: Connected,
    *,
    tokens: Tokens = 2048,
    tokenizer: Tokenizer = "o200k_base",
    listed: Listed,
) -> None:
    """Show for each candidate how it scored and why it is in the context or not."""
    with opened(common) as session:
        window = session.engine.explain(
            question,
            Budget(tokens, tokenizer),
            document=listed.document,
            collection=session.collection,
            where=session.where(looking),
            floor=looking.floor,
            situation=looking.situation(),
            **looking.fields(),
        )
    show(window, trace_table(window, listed.limit), as_json=common.json)
    more = len(window.trace) - listed.limit
    if more > 0 and not common.json:
        note(f"{more} more candidates: --limit {len(window.trace)}")
    _finish(window, common)


def require_shown(tokens: int, shows: Callable[[int], bool], *, shown: bool) -> None:
    """Raise InvalidInput if a window is empty for want of tokens, with the least number that would do."""
    if shown:
        return
    enough = max(tokens, 1)
    while not shows(enough):
        if enough > MOST_TRIED:
            raise InvalidInput("tokens", f"{tokens} is too small to show anything")
        enough *= 2
    least = bisect_left(range(enough), True, lo=tokens, key=shows)
    raise InvalidInput("tokens", f"{tokens} is too small to show anything; {least} is the least that does")


def bar(share: float) -> str:
    """A bar of ten cells, filled by a share from 0 to 1."""
    eighths = round(min(1.0, max(0.0, share)) * BAR * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(BAR)


def hits_table(found: Retrieval, query: str, sources: Mapping[str, str]) -> RenderableType:
    """Hits with a bar that compares their scores with the best, and with the part that matches the query.

    `sources` are names of sources by their ids.
    """
    table = plain_table("#", "score", "", "words", "similarity", "document", "from", "text")
    best = max((hit.score for hit in found.hits), default=0.0)
    for number, hit in enumerate(found.hits, 1):
        share = hit.score / best if best > 0 else 0.0
        table.add_row(
            str(number),
            f"{hit.score:.3f}",
            Text(bar(share), style="green"),
            _number(hit.words),
            _number(hit.similarity),
            _name(hit),
            _from(hit, sources.get(hit.document.source, "")),
            cell(excerpt(hit.chunk.text, query), limit=SHOWN),
        )
    return table


def trace_table(window: ContextWindow, limit: int) -> RenderableType:
    """The first candidates with their parts, their fate and the reason."""
    table = plain_table("#", "fate", "tokens", "score", "parts", "title", "reason")
    for entry in window.trace[:limit]:
        table.add_row(
            str(entry.rank),
            Text(entry.fate, style=FATES[entry.fate]),
            str(entry.tokens),
            f"{entry.score:.3f}",
            cell(_parts(entry.parts)),
            cell(entry.title or entry.document, limit=60),
            cell(entry.reason),
        )
    used = f"{window.tokens} of {window.allowed} tokens ({window.tokenizer})"
    return Group(table, Text(used))


def excerpt(text: str, query: str) -> str:
    """The text from the sentence with most terms of the query on, or all of it if that is near the start."""
    analyzer = analyzer_for("english")
    wanted = set(analyzer.terms(query))
    best, start = 0, 0
    for begin, end in sentences(text):
        found = len(wanted.intersection(analyzer.terms(text[begin:end])))
        if found > best:
            best, start = found, begin if end > SHOWN else 0
    return f"… {text[start:]}" if start else text


def _finish(found: Retrieval | ContextWindow, common: Common) -> None:
    """Say what could not be taken into account, and whether there was anything."""
    if not common.json:
        for notice in found.notices:
            note(notice)
    if found.outcome == "nothing_relevant":
        if not common.json:
            note("nothing relevant was found")
        raise typer.Exit(NOTHING)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _name(hit: Hit) -> Text:
    name = cell(hit.document.title or hit.document.location, limit=60)
    if hit.through:
        name.append(f", through {' → '.join(hit.through)}", style="dim")
    return name if hit.chunk.page is None else name.append(f", p. {hit.chunk.page}")


def _from(hit: Hit, source: str) -> Text:
    """The key or path of the document, unless it is a random id, and the source."""
    location = "" if is_uuid(hit.document.location) else hit.document.location
    both = f"{location} ({source})" if location and source else location or source
    return cell(both, limit=60)


def _parts(parts: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:+.3f}" for name, value in parts.items())

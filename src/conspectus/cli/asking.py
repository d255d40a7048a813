"""search, context and explain."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from conspectus.cli.failures import NOTHING
from conspectus.cli.options import Common, Connected
from conspectus.cli.output import dump, note, show, write
from conspectus.cli.session import opened
from conspectus.cli.tables import hits_table, trace_table
from conspectus.errors import InvalidInput
from conspectus.model.query import EVERYWHERE, Budget
from conspectus.model.results import ContextWindow, Retrieval

Question = Annotated[str, typer.Argument(help="The question.")]
Tokens = Annotated[int, typer.Option(min=0, help="The budget, from which --system and --answer are paid.")]
Tokenizer = Annotated[str, typer.Option(help="Who counts: o200k_base, cl100k_base, hf:PATH or an estimator.")]


MOST_TRIED = 1 << 17


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


def _finish(found: Retrieval | ContextWindow, common: Common) -> None:
    """Say what could not be taken into account, and whether there was anything."""
    if not common.json:
        for notice in found.notices:
            note(notice)
    if found.outcome == "nothing_relevant":
        if not common.json:
            note("nothing relevant was found")
        raise typer.Exit(NOTHING)

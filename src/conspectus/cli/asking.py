"""search, context and explain."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from conspectus.cli.failures import NOTHING
from conspectus.cli.options import Common, Connected
from conspectus.cli.output import dump, note, show, write
from conspectus.cli.session import opened
from conspectus.cli.tables import hits_table, trace_table
from conspectus.model.query import Budget
from conspectus.model.results import ContextWindow, Retrieval

Question = Annotated[str, typer.Argument(help="The question.")]
Tokens = Annotated[int, typer.Option(min=0, help="The budget, from which --system and --answer are paid.")]
Tokenizer = Annotated[str, typer.Option(help="Who counts: o200k_base, cl100k_base, hf:PATH or an estimator.")]


@dataclass(frozen=True, slots=True)
class Reserve:
    """What else the tokens have to pay for, and who counts them."""

    tokenizer: Tokenizer = "o200k_base"
    system: Annotated[str, typer.Option(help="System prompt that the tokens must also pay for.")] = ""
    answer: Annotated[int, typer.Option(min=0, help="Tokens kept free for the model's answer.")] = 0


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
    show(found, hits_table(found), as_json=common.json)
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
        window = session.engine.window(
            question,
            Budget(tokens, reserve.tokenizer, reserve.system, answer=reserve.answer),
            renderer=form,
            collection=session.collection,
            where=session.where(looking),
            floor=looking.floor,
            situation=looking.situation(),
            **looking.fields(),
        )
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
    document: Annotated[str | None, typer.Option(help="Also show why this document is in or out.")] = None,
) -> None:
    """Show for every candidate how it scored and why it is in the context or not."""
    with opened(common) as session:
        window = session.engine.explain(
            question,
            Budget(tokens, tokenizer),
            document=document,
            collection=session.collection,
            where=session.where(looking),
            floor=looking.floor,
            situation=looking.situation(),
            **looking.fields(),
        )
    show(window, trace_table(window), as_json=common.json)
    _finish(window, common)


def _finish(found: Retrieval | ContextWindow, common: Common) -> None:
    """Say what could not be taken into account, and whether there was anything."""
    if not common.json:
        for notice in found.notices:
            note(notice)
    if found.outcome == "nothing_relevant":
        if not common.json:
            note("nothing relevant was found")
        raise typer.Exit(NOTHING)

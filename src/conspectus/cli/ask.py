"""ask: answer a question with the chat model."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import field
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Table

from conspectus.cli.declared import argument, option
from conspectus.cli.errors import BUSY, FAILED, fail
from conspectus.cli.options import Searched
from conspectus.cli.output import cell, dump, note, printable, rows_table, show, write
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import ChatNotConfigured, ChatRateLimited, ChatTimedOut, ChatUnreachable, InvalidInput
from conspectus.model.chat import (
    Allocation,
    ChatEvent,
    ChatRequest,
    ChatSource,
    Citations,
    Delta,
    Failure,
    Sources,
    Usage,
)
from conspectus.model.query import DEFAULT_MIN_SIMILARITY
from conspectus.model.records import reading_mark

DEFAULTS: Final = Allocation()
RETRYABLE: Final = {ChatRateLimited.code, ChatTimedOut.code, ChatUnreachable.code, "stopping"}
"""Codes of failures that a retry may solve."""
NO_MODEL: Final = "CONSPECTUS_CHAT_MODEL is not set; these are the passages that a chat model would receive"

E = TypeVar("E", bound=ChatEvent)


@dataclass(frozen=True, slots=True)
class PrintedAnswer:
    """The events of an answer."""

    events: list[ChatEvent] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The complete text."""
        return "".join(event.text for event in self.events if isinstance(event, Delta))

    @property
    def sources(self) -> Sources:
        """The sources of the answer."""
        return self.last(Sources) or Sources("off")

    def last(self, kind: type[E]) -> E | None:
        """Return the last event of a type, if there is one."""
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)


def ask(
    query: Annotated[str, argument(ChatRequest, "message", metavar="QUERY")],
    session: Session,
    searched: Searched,
    *,
    max_tokens: Annotated[int, option(Allocation, "context")] = DEFAULTS.context,
    max_answer_tokens: Annotated[int, option(Allocation, "answer")] = DEFAULTS.answer,
    no_context: Annotated[bool, typer.Option("--no-context", help="Send the query without context.")] = False,
) -> None:
    """Answer with the chat model, with citations."""
    if max_answer_tokens < 1:
        raise InvalidInput("max_answer_tokens", "must be at least 1")
    request = ChatRequest(
        query,
        collection=session.collection,
        filter=session.build_filter(searched),
        min_similarity="default" if searched.min_similarity is None else searched.min_similarity,
        min_confidence=searched.min_confidence,
        min_trust=searched.min_trust,
        use_context=not no_context,
        allocation=Allocation(context=max_tokens, answer=max_answer_tokens),
    )
    printed = _print_answer(session, request, print_text=not session.json)
    failure = printed.last(Failure)
    if failure is None:
        _finish(printed, session)
    elif failure.code == ChatNotConfigured.code and not no_context:
        _print_passages(session, request, printed.sources)
    else:
        fail(failure.code, failure.message, facts={}, as_json=session.json)
        raise typer.Exit(BUSY if failure.code in RETRYABLE else FAILED)


def sources_table(sources: Sequence[ChatSource]) -> Table:
    """Return numbered sources, one per line."""
    rows = (
        (
            f"[{source.number}]", cell(source.title or source.location, limit=60),
            cell(", ".join(_location_parts(source)), limit=60), cell(source.snippet, limit=100),
        )
        for source in sources
    )  # fmt: skip
    return rows_table(("", "source", "location", "text"), rows)


def _print_answer(session: Session, request: ChatRequest, *, print_text: bool) -> PrintedAnswer:
    """Collect all events; with `print_text`, text is printed as it arrives."""
    printed = PrintedAnswer()
    with closing(session.engine.chat.stream(request)) as events:
        for event in events:
            printed.events.append(event)
            if print_text and isinstance(event, Delta):
                _write(event.text)
    if print_text and printed.last(Delta):
        _write("\n")
    return printed


def _write(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def _finish(printed: PrintedAnswer, session: Session) -> None:
    citations = printed.last(Citations) or Citations(())
    if session.json:
        parts = {"sources": printed.sources, "citations": citations, "usage": printed.last(Usage)}
        dump({"answer": printed.text, **parts})
        return
    if citations.cited:
        print()
        show(citations, sources_table(citations.cited), as_json=False)
    elif printed.sources.sources:
        note(f"the answer cites no source of {len(printed.sources.sources):,}")
    if citations.unknown:
        numbers = ", ".join(f"[{number}]" for number in citations.unknown)
        note(f"warning: the answer cites {numbers}, which is not in the context")
    _note_sources(session, printed.sources)


def _print_passages(session: Session, request: ChatRequest, sources: Sources) -> None:
    """Print the passages that a model would receive, if none is set."""
    min_similarity = request.min_similarity
    window = session.engine.window(
        request.message,
        request.allocation.context,
        collection=request.collection,
        filter=request.filter,
        min_similarity=DEFAULT_MIN_SIMILARITY if min_similarity == "default" else min_similarity,
        min_confidence=request.min_confidence,
        min_trust=request.min_trust,
    )
    if session.json:
        dump({"answer": None, "sources": sources, "citations": None, "usage": None, "passages": window.text})
    elif window.text:
        write(window.text)
        print()
        show(sources, sources_table(sources.sources), as_json=False)
    note(NO_MODEL)
    _note_sources(session, sources)
    if not window.text:
        session.end_with_nothing()


def _note_sources(session: Session, sources: Sources) -> None:
    if sources.outcome == "no_match":
        session.note("no match")
    if sources.notice is not None:
        session.note(sources.notice)


def _location_parts(source: ChatSource) -> Iterable[str]:
    if source.page is not None:
        yield f"p. {source.page}"
    if mark := reading_mark(source.read_by):
        yield mark
    if source.heading:
        yield source.heading

"""memory: add memories, recall them and show context from them."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import option
from conspectus.cli.options import (
    AsOf,
    Format,
    HitLimit,
    InScope,
    MaxTokens,
    MinConfidence,
    MinSimilarity,
    MinTrustOption,
    Query,
    instant,
)
from conspectus.cli.output import cell, dump, erasure_text, moment, rows_table, write
from conspectus.cli.search import require_nonempty
from conspectus.cli.session import MemorySession, Opening, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.memory.scopes import scope_of
from conspectus.model.graph import Fact, GraphExpansion
from conspectus.model.memory import (
    MEMORY,
    Memory,
    MemoryHit,
    MemoryQuery,
    MemoryQueryOptions,
    MemoryReceipt,
    MemoryWritten,
    RecentMemory,
    Scope,
)
from conspectus.model.parameters import DEFAULT_HITS
from conspectus.text.counts import format_count

MAX_TEXT_LENGTH: Final = 400
MAX_LINE_LENGTH: Final = 200
MAX_USERS_SHOWN: Final = 10
COUNTED: Final = {
    "memories": "memory",
    "versions": "version",
    "chunks": "chunk",
    "vectors": "vector",
    "edges": "edge",
    "facts": "extracted fact",
    "answers": "answer record",
}
NO_MEMORIES: Final = "no memories"


@dataclass(frozen=True, slots=True)
class Stated:
    """The fact that a memory states."""

    fact: Annotated[str | None, typer.Option(help="Fact: 'SUBJECT | PREDICATE | OBJECT'.")] = None


@dataclass(frozen=True, slots=True)
class Recalling:
    """Filters and limits of a memory search."""

    as_of: AsOf = None
    limit: HitLimit = DEFAULT_HITS
    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None
    alpha: Annotated[float, option(GraphExpansion, "alpha")] = GraphExpansion().alpha
    hops: Annotated[int, option(GraphExpansion, "hops")] = GraphExpansion().hops
    all_conversations: Annotated[bool, option(MemoryQuery, "all_conversations", "--all-conversations")] = (
        False
    )

    def options(self, session: Session) -> MemoryQueryOptions:
        """Return the options of the engine."""
        return {
            "collection": session.collection,
            "limit": self.limit,
            "as_of": instant(self.as_of),
            "graph": GraphExpansion(self.alpha, self.hops) if self.hops else None,
            "min_similarity": self.min_similarity,
            "min_confidence": self.min_confidence,
            "min_trust": self.min_trust,
            "all_conversations": self.all_conversations,
        }


def _note_others(session: Session, scope: InScope) -> None:
    """Print the users whose memories the caller may read, if no user was given."""
    if scope.user is not None or session.json:
        return
    scope_names = [
        source.name
        for source in session.engine.collections.list_sources(collection=session.collection)
        if source.kind == "memory"
    ]
    users = sorted({user for user in (scope_of(name).user for name in scope_names) if user is not None})
    named = ", ".join(users[:MAX_USERS_SHOWN]) + (
        f" and {len(users) - MAX_USERS_SHOWN} more" if users[MAX_USERS_SHOWN:] else ""
    )
    if users:
        session.note(f"there are memories of these users: {named}. Select one with --user.")


def memories_picture(memories: Sequence[Memory]) -> RenderableType:
    """Return each memory below a line with its id, and its scope if scopes differ."""
    several = len({memory.scope for memory in memories}) > 1
    lines: list[RenderableType] = []
    for memory in memories:
        scope_text = scope_name(memory.scope) if several else ""
        head = (
            cell(moment(memory.document.occurred)),
            cell(memory.id, style="dim"),
            name_speaker(memory),
            cell(scope_text),
            marks(memory),
        )
        lines += [
            Text("  ").join(part for part in head if part),
            _below(cell(memory.text, limit=MAX_TEXT_LENGTH)),
        ]
    return Group(*lines)


def draw_recalled_memories(hits: Sequence[MemoryHit]) -> RenderableType:
    """Return each memory below a line with its score and origins."""
    lines: list[RenderableType] = []
    for number, hit in enumerate(hits, 1):
        memory = hit.memory
        head_parts = (
            cell(f"{number} {', '.join(hit.origins)}", style="bold"),
            cell(moment(memory.document.occurred)),
            name_speaker(memory),
        )
        score = cell(f"{hit.score:.3f}", style="dim")
        head = Text("  ").join(part for part in (*head_parts, marks(memory), score, cell(memory.id)) if part)
        lines += [head, _below(cell(memory.text, limit=MAX_TEXT_LENGTH))]
        lines += [_below(cell(reason, style="yellow")) for reason in hit.why]
    return Group(*lines)


def recent_table(turns: Sequence[RecentMemory]) -> RenderableType:
    """Return the newest turns, oldest first, with their tokens."""
    rows = (
        (
            moment(turn.memory.document.occurred),
            name_speaker(turn.memory),
            turn.tokens,
            "cut" if turn.cut else "",
            cell(turn.text, limit=MAX_LINE_LENGTH),
        )
        for turn in turns
    )
    return rows_table(("time", "author", "tokens", "", "text"), rows)


def receipt_text(receipt: MemoryReceipt) -> str:
    """Return the numbers of memories that were deleted, or would be."""
    counts = [
        format_count(number, noun)
        for name, noun in COUNTED.items()
        if (number := getattr(receipt, name)) or name == "memories"
    ]
    gone = f"{'would delete' if receipt.dry_run else 'deleted'} {', '.join(counts)}"
    return gone + erasure_text(purged=receipt.purged, is_pending=receipt.erasure_pending)


def name_speaker(memory: Memory) -> Text:
    """Return the speaker or role of a memory."""
    return cell(memory.document.author or memory.document.role or "")


def marks(memory: Memory) -> Text:
    """Return labels: the kind if it is no turn, pinned, fact, ended, old version, near duplicate."""
    flags = {
        "fact": memory.fact is not None and memory.closed_by is None and memory.cites is None,
        memory.kind: memory.kind != "turn",
        "pinned": memory.pinned,
        "ended": memory.closed_by is not None,
        f"until {moment(memory.known_until)}": memory.known_until is not None,
        "near duplicate": bool(memory.near),
    }
    return cell(", ".join(name for name, holds in flags.items() if holds), style="dim")


def scope_name(scope: Scope) -> str:
    """Return a scope in words."""
    parts = (("user", scope.user), ("agent", scope.agent), ("conversation", scope.conversation))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None) or "no user"


def _parse_fact(_: Session, arguments: Arguments) -> None:
    text = arguments["extra"].fact
    arguments["fact"] = None if text is None else _fact(text)


def _show_added(session: Session, written: MemoryWritten, _: Arguments) -> None:
    session.note_quarantined([written])
    lines = [f"{written.outcome} {written.id}", *(f"near duplicate: {memory}" for memory in written.near)]
    session.show(written, "\n".join([*lines, *(f"ended the fact of {memory}" for memory in written.closed)]))


def recall(query: Query, session: MemorySession, scope: InScope, options: Recalling) -> None:
    """Search memories."""
    recalled = session.engine.memory.recall(query, scope=scope.scope(), **options.options(session))
    if not recalled.memories:
        _note_others(session, scope)
    session.note(*recalled.notices)
    if (since := recalled.since) is not None:
        counts = f"{since.recorded} recorded, {since.changed} changed, {since.deleted} deleted"
        session.note(f"since then: {counts}")
    session.show_or_exit(
        recalled, draw_recalled_memories(recalled.memories), "no match", matches=recalled.memories
    )


def context(
    query: Query,
    session: MemorySession,
    scope: InScope,
    options: Recalling,
    *,
    max_tokens: MaxTokens = 4_000,
    form: Format = "text",
) -> None:
    """Print the context window for a query on memories."""
    window = partial(session.engine.memory.window, query, scope=scope.scope(), **options.options(session))
    memory_window = window(max_tokens, format=form)
    if memory_window.window.outcome == "found":
        require_nonempty(
            max_tokens, lambda maximum: window(maximum).tokens > 0, has_text=memory_window.tokens > 0
        )
    else:
        _note_others(session, scope)
    if session.json:
        dump(memory_window)
    elif form == "messages":
        dump(memory_window.window.messages)
    elif memory_window.text:
        write(memory_window.text)
    session.note(f"{memory_window.tokens:,} of {format_count(max_tokens, 'token')}")
    if not memory_window.text:
        session.end_with_nothing()


def _below(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))


def _fact(text: str) -> Fact:
    """Parse a fact of three parts between bars. Raises InvalidInput."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) != 3 or not all(parts):
        raise InvalidInput("fact", "must have three parts: 'SUBJECT | PREDICATE | OBJECT'")
    return Fact(parts[0], parts[1], parts[2])


MEMORY_COMMANDS: Final = {
    "add": Command(
        "memory:MemoryService.add", "Add a memory.", element="memories",
        only="key role speaker at kind pinned entities valid_from valid_until wait",
        options={"speaker": "--author", "pinned": "--pin", "entities": "--entity"}, defaults={"wait": True},
        extra=Stated, prepare=_parse_fact, show=_show_added, opening=Opening(new=True, usual=MEMORY),
    ),
    "recall": recall, "context": context,
    "recent": Command(
        "memory:MemoryService.list_recent", "List the latest turns, oldest first.", recent_table,
        only="limit max_tokens", nothing=NO_MEMORIES, opening=Opening(usual=MEMORY),
    ),
}  # fmt: skip

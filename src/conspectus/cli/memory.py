"""memory: add memories, recall them and show context from them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Final, Literal

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.errors import NOTHING, show_found
from conspectus.cli.options import Common
from conspectus.cli.output import cell, dump, note, plain_table, progress, show, write
from conspectus.cli.search import require_shown
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.memory.scopes import scope_of
from conspectus.model.graph import Fact, GraphExpansion
from conspectus.model.memory import (
    MEMORY,
    Memory,
    MemoryHit,
    MemoryQuery,
    MemoryReceipt,
    MemoryRetrieval,
    NewMemory,
    RecentMemory,
    Scope,
)
from conspectus.settings import Settings
from conspectus.text.times import parse_instant

TEXT: Final = 400
LINE: Final = 200
SHOWN_USERS: Final = 10
COUNTED: Final = {
    "memories": "memory",
    "versions": "version",
    "chunks": "chunk",
    "vectors": "vector",
    "edges": "edge",
}
NO_MEMORIES: Final = "there are no memories"
Id = Annotated[str, typer.Argument(metavar="MEMORY", help="Id of a memory.")]
Purge = Annotated[bool, typer.Option("--purge", help="Return only when no file holds the texts.")]
Preview = Annotated[bool, typer.Option("--preview", help="Delete nothing and say what would go.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="What is to be recalled.")]


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose memories."""

    user: Annotated[str | None, typer.Option(help="The user. Default: none, which is a name of its own.")] = (
        None
    )
    agent: Annotated[str | None, typer.Option(help="The agent. Default: any, or none in writing.")] = None
    conversation: Annotated[
        str | None, typer.Option(help="The conversation. Default: any, or none in writing.")
    ] = None

    def scope(self) -> Scope:
        """As the engine takes it."""
        return Scope(self.user, self.agent, self.conversation)


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a memory."""

    key: Annotated[
        str | None, typer.Option(help="Your id for it; of one that is stored, this is a new version.")
    ] = None
    role: Annotated[str | None, typer.Option(help="Whose turn it is: user, assistant, ...")] = None
    speaker: Annotated[str | None, typer.Option(help="Who said it.")] = None
    at: Annotated[str | None, typer.Option(help="When it was said, an ISO 8601 time. Default: now.")] = None
    note: Annotated[bool, typer.Option("--note", help="A standing note: considered for every window.")] = (
        False
    )
    pin: Annotated[bool, typer.Option("--pin", help="No retention deletes it.")] = False
    entity: Annotated[list[str], typer.Option(help="A name that it mentions; may be repeated.")] = field(
        default_factory=list
    )
    fact: Annotated[
        str | None, typer.Option(help="A fact that it states: 'SUBJECT | RELATION | OBJECT'.")
    ] = None
    valid_from: Annotated[str | None, typer.Option(help="Since when the fact holds.")] = None
    valid_until: Annotated[str | None, typer.Option(help="Until when the fact holds.")] = None

    def memory(self, text: str) -> NewMemory:
        """As the engine takes it."""
        return NewMemory(
            text,
            self.key,
            self.role,
            self.speaker,
            self.at,
            "note" if self.note else "turn",
            self.pin,
            None if self.fact is None else _fact(self.fact),
            self.valid_from,
            self.valid_until,
            tuple(self.entity),
        )


@dataclass(frozen=True, slots=True)
class Recalling:
    """What may be recalled."""

    as_of: Annotated[str | None, typer.Option(help="What was known at this ISO 8601 time. Default: now.")] = (
        None
    )
    limit: Annotated[int, typer.Option(min=1, help="Most memories.")] = 10
    floor: Annotated[
        float | None, typer.Option(help="Leave out what is less similar than this (cosine, 0 to 1).")
    ] = None
    alpha: Annotated[float, typer.Option(help="Weight of the graph, 0 to 1.")] = GraphExpansion().alpha
    hops: Annotated[int, typer.Option(help="How far the graph is walked; 0: it has no say.")] = (
        GraphExpansion().hops
    )
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Recall from all conversations, not only the one named.")
    ] = False

    def question(self, text: str, session: Session, whose: Whose) -> MemoryQuery:
        """As the engine takes it."""
        return MemoryQuery(
            text,
            whose.scope(),
            session.collection,
            self.limit,
            instant(self.as_of),
            graph=GraphExpansion(self.alpha, self.hops) if self.hops else None,
            floor=self.floor,
            everywhere=self.everywhere,
        )


@contextmanager
def remembering(common: Common, *, new: bool = False) -> Iterator[Session]:
    """The session of a command about memories: unless another is named, in the collection of memories."""
    with opened(common, new=new) as session:
        usual = common.collection is None and session.collection == Settings().default_collection
        yield replace(session, collection=MEMORY) if usual else session


def note_others(session: Session, whose: Whose) -> None:
    """Say that there are memories of users, where none was named; only what the caller may see."""
    if whose.user is not None:
        return
    kept = [
        each.name for each in session.engine.sources(collection=session.collection) if each.kind == "memory"
    ]
    users = sorted({user for user in (scope_of(name).user for name in kept) if user is not None})
    named = ", ".join(users[:SHOWN_USERS]) + (
        f" and {len(users) - SHOWN_USERS} more" if users[SHOWN_USERS:] else ""
    )
    if users:
        note(f"there are memories of the users {named}; choose one with --user")


def instant(text: str | None) -> datetime | None:
    """The time that is named, if there is one. Raises InvalidInput."""
    return None if text is None else parse_instant(text)


def memories_picture(memories: Sequence[Memory]) -> RenderableType:
    """Each memory below a line with its id, and with whose it is where they differ in it."""
    several = len({each.scope for each in memories}) > 1
    lines: list[RenderableType] = []
    for each in memories:
        place = scope_name(each.scope) if several else ""
        head = (cell(said_at(each)), cell(each.id, style="dim"), who(each), cell(place), marks(each))
        lines += [Text("  ").join(part for part in head if part), _below(cell(each.text, limit=TEXT))]
    return Group(*lines)


def recalled_picture(found: Sequence[MemoryHit]) -> RenderableType:
    """Each memory below a line with its score and its origin, and what else has to be known of it."""
    lines: list[RenderableType] = []
    for number, each in enumerate(found, 1):
        memory = each.memory
        place = cell(f"{number} {', '.join(each.origins)}", style="bold"), cell(said_at(memory)), who(memory)
        score = cell(f"{each.score:.3f}", style="dim")
        head = Text("  ").join(part for part in (*place, marks(memory), score, cell(memory.id)) if part)
        lines += [head, _below(cell(memory.text, limit=TEXT))]
        lines += [_below(cell(reason, style="yellow")) for reason in each.why]
    return Group(*lines)


def recent_table(found: Sequence[RecentMemory]) -> RenderableType:
    """The last turns, oldest first, with what each costs."""
    table = plain_table("said", "who", "tokens", "", "text")
    for each in found:
        cut = "cut" if each.cut else ""
        text = cell(each.text, limit=LINE)
        table.add_row(said_at(each.memory), who(each.memory), f"{each.tokens:,}", cut, text)
    return table


def receipt_text(receipt: MemoryReceipt) -> str:
    """What is gone, or what would go."""
    counts = [
        f"{number:,} {one if number == 1 else name}"
        for name, one in COUNTED.items()
        if (number := getattr(receipt, name)) or name == "memories"
    ]
    gone = f"{'would delete' if receipt.preview else 'deleted'} {', '.join(counts)}"
    return gone + ("; no file holds them any more" if receipt.purged else "")


def said_at(memory: Memory) -> str:
    """When it was said."""
    return "-" if memory.document.occurred is None else f"{memory.document.occurred.start:%Y-%m-%d %H:%M:%S}"


def who(memory: Memory) -> Text:
    """Who said it."""
    return cell(memory.document.author or memory.document.role or "")


def marks(memory: Memory) -> Text:
    """What is special about it: a note, pinned, a fact, ended, one of several that say nearly the same."""
    told = {
        "note": memory.kind == "note",
        "pinned": memory.pinned,
        "fact": memory.fact is not None and memory.closed_by is None,
        "ended": memory.closed_by is not None,
        "until": memory.known_until is not None,
        "near": bool(memory.near),
    }
    words = [name for name, holds in told.items() if holds]
    if memory.known_until is not None:
        words[words.index("until")] = f"until {memory.known_until:%Y-%m-%d %H:%M:%S}"
    return cell(", ".join(words), style="dim")


def scope_name(scope: Scope) -> str:
    """Whose memories, in a word."""
    parts = (("user", scope.user), ("agent", scope.agent), ("conversation", scope.conversation))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None) or "nobody's"


def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be remembered, word for word.")],
    common: Common,
    whose: Whose,
    said: Said,
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Return when it is found by meaning too.")
    ] = True,
) -> None:
    """Remember something."""
    with remembering(common, new=True) as session, progress() as bars:
        [done] = session.engine.remember(
            said.memory(text),
            scope=whose.scope(),
            collection=session.collection,
            wait=wait,
            progress=bars,
        )
    lines = [f"{done.outcome} {done.id}", *(f"nearly the same: {each}" for each in done.near)]
    lines += [f"ended the fact of {each}" for each in done.closed]
    show(done, "\n".join(lines), as_json=common.json)


def recall(question: Question, common: Common, whose: Whose, wanted: Recalling) -> None:
    """Find the memories that answer a question, with how each was found."""
    with remembering(common) as session:
        found = session.engine.recall(wanted.question(question, session, whose))
        if not found.memories and not common.json:
            note_others(session, whose)
    if not common.json:
        _note_plan(found)
    if common.json or found.memories:
        show(found, recalled_picture(found.memories), as_json=common.json)
    if not found.memories:
        if not common.json:
            note("nothing relevant is remembered")
        raise typer.Exit(NOTHING)


def context(
    question: Question,
    common: Common,
    whose: Whose,
    wanted: Recalling,
    *,
    tokens: Annotated[int, typer.Option(min=0, help="Most tokens, counted with o200k_base.")] = 4_000,
    form: Annotated[
        Literal["text", "xml", "json", "messages", "guarded"], typer.Option("--format", help="Rendering.")
    ] = "text",
) -> None:
    """Print standing notes, what answers a question, and the last turns, within a number of tokens."""
    with remembering(common) as session:
        asked = wanted.question(question, session, whose)
        found = session.engine.memory_window(asked, tokens, renderer=form)
        if found.window.outcome == "found":
            window = session.engine.memory_window
            require_shown(tokens, lambda most: window(asked, most).tokens > 0, shown=found.tokens > 0)
        elif not common.json:
            note_others(session, whose)
    if common.json:
        dump(found)
    elif form == "messages":
        dump(found.window.messages)
    elif found.text:
        write(found.text)
    if not common.json:
        note(f"{found.tokens} of {tokens} tokens")
    if not found.text:
        raise typer.Exit(NOTHING)


def recent(
    common: Common,
    whose: Whose,
    *,
    turns: Annotated[
        int | None, typer.Option(min=0, help="Most turns. Default: CONSPECTUS_RECENT_MEMORY_TURNS.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens. Default: CONSPECTUS_RECENT_MEMORY_TOKENS.")
    ] = None,
) -> None:
    """Show the last turns that fit, oldest first."""
    with remembering(common) as session:
        found = session.engine.recent_memories(
            scope=whose.scope(), collection=session.collection, turns=turns, tokens=tokens
        )
    show_found(found, recent_table(found), NO_MEMORIES, as_json=common.json)


def _below(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))


def _note_plan(found: MemoryRetrieval) -> None:
    """Say what the answer could not take into account, and what has changed since the time asked for."""
    for notice in found.notices:
        note(notice)
    if found.since is not None:
        since = found.since
        note(f"since then: {since.recorded} recorded, {since.changed} changed, {since.deleted} deleted")


def _fact(text: str) -> Fact:
    """The fact that three parts between bars are. Raises InvalidInput."""
    parts = [each.strip() for each in text.split("|")]
    if len(parts) != 3 or not all(parts):
        raise InvalidInput("fact", "needs three parts: 'SUBJECT | RELATION | OBJECT'")
    return Fact(parts[0], parts[1], parts[2])

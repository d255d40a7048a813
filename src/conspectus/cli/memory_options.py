"""Options that commands about memories share, and how memories look."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.options import Common
from conspectus.cli.output import cell, note
from conspectus.cli.reporting import plain_table
from conspectus.cli.session import Session, opened
from conspectus.memory.scopes import scope_of
from conspectus.model.memory import MEMORY, ForgetReceipt, Memory, Recalled, RecentMemory, Scope
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


@contextmanager
def remembering(common: Common, *, new: bool = False) -> Iterator[Session]:
    """The session of a command about memories: unless another is named, in the collection of memories."""
    with opened(common, new=new) as session:
        usual = common.collection is None and session.collection == Settings().collection
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


def recalled_picture(found: Sequence[Recalled]) -> RenderableType:
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


def receipt_text(receipt: ForgetReceipt) -> str:
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


def _below(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))

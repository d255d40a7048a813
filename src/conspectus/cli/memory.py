"""memory: what agents remember, recall, change and forget."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import typer

from conspectus.cli import memory_kept, memory_shown
from conspectus.cli.asking import require_shown
from conspectus.cli.failures import NOTHING
from conspectus.cli.memory_options import (
    NO_MEMORIES,
    Whose,
    instant,
    note_others,
    recalled_picture,
    recent_table,
    remembering,
)
from conspectus.cli.options import Common, spread
from conspectus.cli.output import dump, note, progress, show, write
from conspectus.cli.session import Session
from conspectus.cli.video_options import show_found
from conspectus.errors import InvalidInput
from conspectus.model.graph import Fact, GraphAsk
from conspectus.model.memory import MemoryQuestion, NewMemory, Recollection

Question = Annotated[str, typer.Argument(metavar="QUESTION", help="What is to be recalled.")]


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
    alpha: Annotated[float, typer.Option(help="Weight of the graph, 0 to 1.")] = GraphAsk().alpha
    hops: Annotated[int, typer.Option(help="How far the graph is walked; 0: it has no say.")] = (
        GraphAsk().hops
    )
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Recall from all conversations, not only the one named.")
    ] = False

    def question(self, text: str, session: Session, whose: Whose) -> MemoryQuestion:
        """As the engine takes it."""
        return MemoryQuestion(
            text,
            whose.scope(),
            session.collection,
            self.limit,
            instant(self.as_of),
            graph=GraphAsk(self.alpha, self.hops) if self.hops else None,
            floor=self.floor,
            everywhere=self.everywhere,
        )


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
        int | None, typer.Option(min=0, help="Most turns. Default: CONSPECTUS_MEMORY_TURNS.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens. Default: CONSPECTUS_MEMORY_TOKENS.")
    ] = None,
) -> None:
    """Show the last turns that fit, oldest first."""
    with remembering(common) as session:
        found = session.engine.recent_memories(
            scope=whose.scope(), collection=session.collection, turns=turns, tokens=tokens
        )
    show_found(found, recent_table(found), NO_MEMORIES, as_json=common.json)


def add_memory(app: typer.Typer) -> None:
    """Put the commands into the program."""
    group = typer.Typer(help="What agents remember, recall and forget.", rich_markup_mode=None)
    commands: Mapping[str, Callable[..., None]] = {
        "add": add, "recall": recall, "context": context, "recent": recent,
        "history": memory_shown.history, "show": memory_shown.show_memory,
        "versions": memory_shown.versions, "update": memory_shown.update, "pin": memory_shown.pin,
        "forget": memory_shown.forget, "retain": memory_kept.retain,
        "conversations": memory_kept.conversations, "stats": memory_kept.stats,
        "export": memory_kept.export, "import": memory_kept.import_lines,
    }  # fmt: skip
    for name, command in commands.items():
        group.command(name)(spread(command))
    group.add_typer(memory_kept.retention_group(), name="retention")
    app.add_typer(group, name="memory")


def _note_plan(found: Recollection) -> None:
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

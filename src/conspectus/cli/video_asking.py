"""video ask and video summary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.failures import FAILED, NOTHING, PARTIAL
from conspectus.cli.options import Common
from conspectus.cli.output import cell, dump, note, progress, show, write
from conspectus.cli.session import Session, opened
from conspectus.cli.video_options import Stream, Within
from conspectus.engine.condensing import EXTRACTIVE
from conspectus.model.video import Moments, Summary, SummaryRequest, VideoQuestion, VideoWindow
from conspectus.streams.showing import shown
from conspectus.text.clocks import StreamClock, clock_of

TEXT = 400
TIME = "time range"
"""The part of a plan that says which times the question was read to name."""
LEFT_OUT = "left out"
"""The part that names streams without such a time."""
USUAL = SummaryRequest("")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be found, and how much of it."""

    stream: Annotated[
        list[str], typer.Option(help="Only this stream (name or id); may be repeated. Default: all.")
    ] = field(default_factory=list)
    limit: Annotated[int, typer.Option(min=1, help="Most moments.")] = 5
    floor: Annotated[
        float | None, typer.Option(help="Leave out what is less similar than this (cosine, 0 to 1).")
    ] = None
    read_times: Annotated[
        bool, typer.Option("--times/--no-times", help="Read times in the question, such as 'around 12:30'.")
    ] = True
    window: Annotated[
        bool, typer.Option("--window", help="Print the captions as context for a model instead.")
    ] = False
    budget: Annotated[int, typer.Option(min=0, help="With --window: most tokens.")] = 4_000

    def question(self, prompt: str, session: Session, within: Within) -> VideoQuestion:
        """The question as the engine takes it."""
        return VideoQuestion(
            prompt,
            tuple(self.stream),
            session.collection,
            within.range(),
            self.read_times,
            floor=self.floor,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True)
class How:
    """How a summary is made."""

    refine: Annotated[
        bool, typer.Option("--refine", help="Improve one summary with each batch, in order.")
    ] = False
    extractive: Annotated[
        bool, typer.Option("--extractive", help="Choose sentences instead of asking a model.")
    ] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Captions in a batch.")] = USUAL.batch_size
    prompt: Annotated[str, typer.Option(help="What matters.")] = ""
    sentences: Annotated[int, typer.Option(min=1, help="Most sentences that are chosen.")] = USUAL.sentences


def ask(
    prompt: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    common: Common,
    within: Within,
    wanted: Wanted,
) -> None:
    """Find the moments of streams that answer a question, with their times."""
    with opened(common) as session:
        question = wanted.question(prompt, session, within)
        if wanted.window:
            _show_window(session.engine.video_window(question, wanted.budget), common)
        else:
            _show_moments(session.engine.find_moments(question), common)


def summary(stream: Stream, common: Common, within: Within, how: How) -> None:
    """Say what happens in a stream, or in a stretch of it."""
    with opened(common) as session, progress() as bars:
        request = SummaryRequest(
            stream,
            session.collection,
            within.range(),
            "refine" if how.refine else "batches",
            how.batch_size,
            how.prompt,
            extractive=how.extractive,
            sentences=how.sentences,
        )
        made = session.engine.summarise(request, progress=bars)
        clock = clock_of(session.engine.find_stream(stream, collection=session.collection).source)
    if common.json:
        dump(made)
    else:
        _show_summary(made, clock)
    if made.outcome == "empty":
        raise typer.Exit(NOTHING)
    if made.failures:
        raise typer.Exit(PARTIAL if made.text else FAILED)


def _show_summary(made: Summary, clock: StreamClock) -> None:
    if made.text:
        write(made.text)
    for each in made.failures:
        start, end = ("-" if second is None else shown(second, clock) for second in (each.start, each.end))
        note(f"left out: {each.captions} captions, {start} to {end}: {each.error}")
    captions = sum(each.captions for each in made.batches if each.state == "done")
    by = "chosen from" if made.by == EXTRACTIVE else f"by {made.by}, of"
    note("there are no captions" if made.outcome == "empty" else f"{by} {captions:,} captions")


def _show_moments(found: Moments, common: Common) -> None:
    if not common.json:
        _show_plan(found.plan, found.notices)
    if common.json or found.moments:
        show(found, _moments_picture(found), as_json=common.json)
    if not found.moments:
        _end_with_nothing(common)


def _show_window(found: VideoWindow, common: Common) -> None:
    if common.json:
        dump(found)
    elif found.window.text:
        write(found.window.text)
    if not common.json:
        _show_plan(found.plan, found.window.notices)
        note(f"{found.window.tokens} of {found.window.allowed} tokens")
    if not found.captions:
        _end_with_nothing(common)


def _end_with_nothing(common: Common) -> None:
    if not common.json:
        note("nothing relevant was found")
    raise typer.Exit(NOTHING)


def _show_plan(plan: Mapping[str, str], notices: tuple[str, ...]) -> None:
    for part in (TIME, LEFT_OUT):
        if part in plan:
            note(f"{part}: {plan[part]}")
    for notice in notices:
        note(notice)


def _moments_picture(found: Moments) -> RenderableType:
    """Each moment with its place in a line, and what is said there below."""
    lines: list[RenderableType] = []
    for number, each in enumerate(found.moments, 1):
        clock = clock_of(each.stream)
        start, end = (shown(second, clock) for second in (each.start, each.end))
        place = cell(f"{number} {each.stream.name}", style="bold"), cell(f"{start} to {end}")
        head = Text("  ").join([*place, cell(f"{each.score:.3f}", style="dim")])
        text = " ".join(caption.text for caption in each.captions)
        lines += [head, Padding(cell(text, limit=TEXT), (0, 0, 0, 2))]
    return Group(*lines)

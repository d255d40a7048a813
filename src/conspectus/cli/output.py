"""Output: data to stdout, everything else to stderr."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from conspectus.model.records import Json, Period
from conspectus.model.results import Percentiles, Similarity

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from conspectus.ports import Progress

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PIPED_WIDTH = 160
"""Columns of output that goes to no terminal."""
PROGRESS_SECONDS = 10.0
"""Seconds between two lines of progress where there is no terminal."""


def to_json_value(value: object) -> Json:
    """Convert any result to JSON: dataclasses by field, times in ISO 8601, non-finite numbers as null.

    Fields of dataclasses are left out as `record_fields` does; mappings keep all of their members.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): to_json_value(member) for name, member in value.items()}
    if is_dataclass(value):
        return {name: to_json_value(member) for name, member in record_fields(value).items()}
    if isinstance(value, list | tuple):
        return [to_json_value(member) for member in value]
    return str(value)


def record_fields(record: Any, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of a dataclass by name, but for `without`.

    An optional field without content (None, or an empty text, list or mapping) is left out. A field that has
    no default is in every answer, so that a script can rely on it.
    """
    members = {
        field.name: (field, getattr(record, field.name))
        for field in fields(record)
        if field.name not in without
    }
    return {
        name: member
        for name, (field, member) in members.items()
        if not _is_optional(field) or not _is_without_content(member)
    }


def dump(value: object) -> None:
    """Print one JSON document."""
    print(_document(value, indent=2))


def dump_line(value: object) -> None:
    """Print one JSON document on one line, and flush."""
    print(_document(value), flush=True)


def show(value: object, picture: RenderableType, *, as_json: bool) -> None:
    """Print the value as JSON or in readable form."""
    if as_json:
        dump(value)
    else:
        _draw(picture)


def write(text: str) -> None:
    """Print text unchanged; on a terminal without control characters."""
    print(printable(text) if sys.stdout.isatty() else text)


def note(text: str) -> None:
    """Print a remark to stderr."""
    print(printable(text), file=sys.stderr)


def printable(text: str) -> str:
    """Remove characters that move the cursor, change colors or reverse text direction."""
    return CONTROL.sub("\ufffd", text)


def cell(text: str, *, limit: int = 0, style: str = "") -> Text:
    """Return text on one line for a table, truncated to a number of characters."""
    line = printable(" ".join(text.split()))
    return Text(f"{line[: limit - 1]}…" if limit and len(line) > limit else line, style=style)


@contextmanager
def progress(*more: "ProgressColumn", seconds: float = PROGRESS_SECONDS) -> Iterator["Progress"]:
    """Show a progress bar on stderr for each kind of work; without a terminal, a line every few seconds."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _progress_lines(seconds)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more)
    with Bars(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        tasks = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield report


def _progress_lines(seconds: float) -> "Progress":
    next_line = monotonic() + seconds

    def report(what: str, done: int, total: int) -> None:
        nonlocal next_line
        if monotonic() >= next_line:
            next_line = monotonic() + seconds
            note(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}")

    return report


def make_plain_table(*columns: str) -> Table:
    """Return a table without lines, whose cells wrap."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def erasure_text(*, purged: bool, is_pending: bool) -> str:
    """Return the end of a line about a deletion: whether files may still hold the text."""
    if is_pending:
        return "; erasure pending: a transaction may still read the text, and the erasure goes on by itself"
    return "; erased from disk" if purged else ""


def rows_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Return a table of rows, formatted by `format_value`; Text is unchanged."""
    table = make_plain_table(*columns)
    for row in rows:
        table.add_row(
            *(content if isinstance(content, Text) else cell(format_value(content)) for content in row)
        )
    return table


def facts_table(facts: Mapping[str, object]) -> Table:
    """Return names and values, one pair per line, without None."""
    return rows_table(
        ("field", "value"), ((name, str(fact)) for name, fact in facts.items() if fact is not None)
    )


def format_value(value: object) -> str:
    """Format a value: integers with separators, times to the second, lists with commas."""
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case Period():
            return format_value(value.start)
        case tuple() | list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def moment(value: datetime | Period | None) -> str:
    """Format a time to the second; a dash if there is none."""
    return format_value(value) or "-"


def valid(start: datetime | None, end: datetime | None) -> str:
    """Format the time range of validity."""
    if start is None and end is None:
        return ""
    return f"{moment(start)} to {moment(end)}"


def similarity_table(figures: Mapping[str, Similarity]) -> RenderableType:
    """Return similarities of related and unrelated texts: 5th, 50th and 95th percentile."""
    table = make_plain_table("similarity", "related", "unrelated")
    for name, similarity in figures.items():
        table.add_row(cell(name), _percentiles(similarity.related), _percentiles(similarity.unrelated))
    return table


def _is_optional(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _is_without_content(member: object) -> bool:
    return member is None or (isinstance(member, str | list | tuple | Mapping) and not member)


def _document(value: object, *, indent: int | None = None) -> str:
    """Return the value as JSON, with terminal control characters escaped."""
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    text = json.dumps(to_json_value(value), ensure_ascii=ascii_only, indent=indent)
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _draw(picture: RenderableType) -> None:
    if sys.stdout.isatty():
        Console(file=sys.stdout).print(picture)
        return
    console = Console(file=sys.stdout, width=PIPED_WIDTH)
    with console.capture() as capture:
        console.print(picture)
    for line in capture.get().split("\n")[:-1]:
        print(line.rstrip())


def _percentiles(percentiles: Percentiles) -> str:
    return f"{percentiles.p5:.2f}  {percentiles.p50:.2f}  {percentiles.p95:.2f}"

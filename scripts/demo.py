"""Ingest real text, ask three questions, and show each window with its citations, its cost and its reasons.

Without DATA the text is the language reference that ships inside Python and this project's own documents.
At the end a small store is made for the console.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pydoc_data.topics import topics

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

import conspectus
from conspectus.cli.main import run
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.model.records import NewDocument
from conspectus.model.results import ContextWindow, TraceEntry
from conspectus.sync import BlockingEngine

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / ".demo"
TOKENS = 1000
CANDIDATES = 12
QUESTIONS = (
    "When is a finally clause executed?",
    "Why is a list as a default argument shared between calls?",
    "What may a test of this project never use?",
)


def main() -> None:
    """Run the demo on DATA, or on what every machine has."""
    console = Console(highlight=False)
    data = os.environ.get("DATA")
    store = STORE / (
        hashlib.sha256(str(Path(data).resolve()).encode()).hexdigest()[:12] if data else "python"
    )
    started = time.perf_counter()
    try:
        with conspectus.open(store) as engine:
            said(console, "open the store", started)
            ingest(engine, console, Path(data) if data else None)
            for question in questions(engine, own=bool(data)):
                asked = time.perf_counter()
                window = engine.window(question, TOKENS)
                show(console, question, window, time.perf_counter() - asked)
    except ConspectusError as error:
        sys.exit(f"{error.code}: {error}")
    console.print(f"The store stays in {store}; make clean removes it.\n")
    sys.exit(run(["demo", str(STORE / "console")]))


def ingest(engine: BlockingEngine, console: Console, data: Path | None) -> None:
    """Store the text, then embed it; what has not changed since the last run is skipped."""
    started = time.perf_counter()
    if data is None:
        engine.add(reference(), source="python")
        paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs"]
        engine.documents.add_files(paths, source="project", prune=True, wait=False)
    else:
        report = engine.documents.add_files([data], source="own", prune=True, wait=False)
        for failure in report.failures:
            console.print(f"not taken in: {escape(failure.name)}: {escape(failure.reason)}")
    said(console, "read, split and store (found by words from here on)", started)
    started = time.perf_counter()
    with bar(console) as bars:
        task = bars.add_task("embedding", total=None)
        engine.documents.wait_until_embedded(
            progress=lambda _, done, total: bars.update(task, completed=done, total=total or None)
        )
    said(console, "embed (found by meaning, too)", started)
    stored = engine.maintenance.status().collections[0]
    console.print(f"{stored.documents} documents in {stored.chunks} chunks\n")


def reference() -> Iterator[NewDocument]:
    """The topics of Python's own help."""
    for name, text in sorted(topics.items()):
        yield NewDocument(key=name, title=text.split("\n", 1)[0].replace('"', ""), text=text)


def questions(engine: BlockingEngine, *, own: bool) -> list[str]:
    """Those of QUESTIONS (with | between them), else ours, else three titles of the data."""
    given = [each.strip() for each in os.environ.get("QUESTIONS", "").split("|") if each.strip()]
    if given or not own:
        return given or list(QUESTIONS)
    documents = engine.documents.list(limit=1000).documents
    titles = list(dict.fromkeys(each.title or each.key for each in documents))
    if not titles:
        raise InvalidInput("DATA", "has no file that can be taken in")
    return [titles[place * (len(titles) - 1) // 2] for place in range(min(3, len(titles)))]


def show(console: Console, question: str, window: ContextWindow, seconds: float) -> None:
    """One window: the text, where it comes from, what it cost, how long it took and why."""
    console.rule(Text(question, style="bold"))
    text = Text(window.text) if window.text else Text("nothing relevant", style="dim")
    used = f"{window.tokens} of {window.max_tokens} tokens ({window.tokenizer})"
    console.print(Panel(text, subtitle=used, subtitle_align="right"))
    for each in window.citations:
        console.print(
            Text(f"[{each.number}] {each.title or each.key}, characters {each.start} to {each.end}")
        )
    steps = ", ".join(f"{step} {milliseconds:.1f}" for step, milliseconds in window.timings.items())
    console.print(Text(f"\n{seconds * 1000:.1f} ms from question to window: {steps}", style="cyan"))
    for notice in window.notices:
        console.print(Text(notice, style="yellow"))
    console.print(reasons(window.trace))


def reasons(trace: tuple[TraceEntry, ...]) -> Table:
    """Why each of the best candidates is in the window or was left out."""
    table = Table(
        "rank", "score", "parts", "fate", "document", "why", title="candidates", title_justify="left"
    )
    for entry in trace[:CANDIDATES]:
        parts = " ".join(f"{name} {share:+.3f}" for name, share in entry.parts.items())
        row = (str(entry.rank), f"{entry.score:.3f}", parts, entry.status, entry.title, entry.reason)
        table.add_row(*map(Text, row), style="green" if entry.status in {"in", "truncated"} else "dim")
    if len(trace) > CANDIDATES:
        table.caption = f"and {len(trace) - CANDIDATES} more"
    return table


def said(console: Console, step: str, started: float) -> None:
    """Say how long a step took."""
    console.print(f"[cyan]{time.perf_counter() - started:8.2f} s[/cyan]  {step}")


@contextmanager
def bar(console: Console) -> Iterator[Bars]:
    """A progress bar that leaves nothing behind."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        yield bars


if __name__ == "__main__":
    main()

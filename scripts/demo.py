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
MAX_WINDOW_TOKENS = 1000
MAX_SHOWN_CANDIDATES = 12
QUESTIONS = (
    "When is a finally clause executed?",
    "Why is a list as a default argument shared between calls?",
    "What may a test of this project never use?",
)


def main() -> None:
    """Run the demo on DATA, or on what every machine has."""
    console = Console(highlight=False)
    data_path = os.environ.get("DATA")
    store = STORE / (
        hashlib.sha256(str(Path(data_path).resolve()).encode()).hexdigest()[:12] if data_path else "python"
    )
    started = time.perf_counter()
    try:
        with conspectus.open(store) as engine:
            print_seconds(console, "open the store", started)
            ingest(engine, console, Path(data_path) if data_path else None)
            for question in choose_questions(engine, has_own_data=bool(data_path)):
                question_started = time.perf_counter()
                window = engine.window(question, MAX_WINDOW_TOKENS)
                print_window(console, question, window, time.perf_counter() - question_started)
    except ConspectusError as error:
        sys.exit(f"{error.code}: {error}")
    console.print(f"The store stays in {store}; make clean removes it.\n")
    sys.exit(run(["demo", str(STORE / "console")]))


def ingest(engine: BlockingEngine, console: Console, data_path: Path | None) -> None:
    """Store the text, then embed it; what has not changed since the last run is skipped."""
    started = time.perf_counter()
    if data_path is None:
        engine.add(read_topics(), source="python")
        paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs"]
        engine.documents.add_files(paths, source="project", prune=True, wait=False)
    else:
        report = engine.documents.add_files([data_path], source="own", prune=True, wait=False)
        for failure in report.failures:
            console.print(f"not read: {escape(failure.name)}: {escape(failure.reason)}")
    print_seconds(console, "read, split and store (keyword search finds it now)", started)
    started = time.perf_counter()
    with progress_bar(console) as bars:
        task = bars.add_task("embedding", total=None)
        engine.documents.wait_until_embedded(
            progress=lambda _, embedded, total: bars.update(task, completed=embedded, total=total or None)
        )
    print_seconds(console, "embed (vector search finds it, too)", started)
    stored = engine.maintenance.status().collections[0]
    console.print(f"{stored.documents} documents in {stored.chunks} chunks\n")


def read_topics() -> Iterator[NewDocument]:
    """Yield the topics of Python's own help."""
    for name, text in sorted(topics.items()):
        yield NewDocument(key=name, title=text.split("\n", 1)[0].replace('"', ""), text=text)


def choose_questions(engine: BlockingEngine, *, has_own_data: bool) -> list[str]:
    """Return those of QUESTIONS (with | between them), else ours, else three titles of the data."""
    own_questions = [
        question.strip() for question in os.environ.get("QUESTIONS", "").split("|") if question.strip()
    ]
    if own_questions or not has_own_data:
        return own_questions or list(QUESTIONS)
    documents = engine.documents.list(limit=1000).documents
    titles = list(dict.fromkeys(document.title or document.key for document in documents))
    if not titles:
        raise InvalidInput("DATA", "has no file that can be read")
    return [titles[number * (len(titles) - 1) // 2] for number in range(min(3, len(titles)))]


def print_window(console: Console, question: str, window: ContextWindow, seconds: float) -> None:
    """Print a window: its text, its citations, its tokens, its time and its candidates."""
    console.rule(Text(question, style="bold"))
    text = Text(window.text) if window.text else Text("nothing relevant", style="dim")
    token_usage = f"{window.tokens} of {window.max_tokens} tokens ({window.tokenizer})"
    console.print(Panel(text, subtitle=token_usage, subtitle_align="right"))
    for citation in window.citations:
        title = citation.title or citation.key
        console.print(Text(f"[{citation.number}] {title}, characters {citation.start} to {citation.end}"))
    steps = ", ".join(f"{step} {milliseconds:.1f}" for step, milliseconds in window.timings.items())
    console.print(Text(f"\n{seconds * 1000:.1f} ms from question to window: {steps}", style="cyan"))
    for notice in window.notices:
        console.print(Text(notice, style="yellow"))
    console.print(candidates_table(window.trace))


def candidates_table(trace: tuple[TraceEntry, ...]) -> Table:
    """Return why each of the best candidates is in the window or was left out."""
    table = Table(
        "rank", "score", "parts", "status", "document", "reason", title="candidates", title_justify="left"
    )
    for candidate in trace[:MAX_SHOWN_CANDIDATES]:
        parts = " ".join(f"{name} {share:+.3f}" for name, share in candidate.parts.items())
        row = (
            str(candidate.rank),
            f"{candidate.score:.3f}",
            parts,
            candidate.status,
            candidate.title,
            candidate.reason,
        )
        table.add_row(
            *map(Text, row), style="green" if candidate.status in {"included", "truncated"} else "dim"
        )
    if len(trace) > MAX_SHOWN_CANDIDATES:
        table.caption = f"and {len(trace) - MAX_SHOWN_CANDIDATES} more"
    return table


def print_seconds(console: Console, step: str, started: float) -> None:
    """Say how long a step took."""
    console.print(f"[cyan]{time.perf_counter() - started:8.2f} s[/cyan]  {step}")


@contextmanager
def progress_bar(console: Console) -> Iterator[Bars]:
    """Show a progress bar, and remove it at the end."""
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

"""Speed of agent memory, compared with other libraries: python benchmarks/memory.py --memories 0 10000
100000.

One memory is stored at a time, and one question asked at a time, in stores that hold more and more. Everyone
works in a process of its own, one after the other. What is measured and how is in benchmarks/README.md.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from corpus import paragraphs, questions
from rich.console import Console
from rich.table import Table

from conspectus.text.clean import clean

HERE = Path(__file__).parent
PYTHON = Path("venv-memory") / "bin" / "python"
OURS = "conspectus"
PEERS = (OURS, "langgraph", "mem0")
KEPT_BACK, QUESTIONS, USERS = 420, 210, 10
KINDS = ("remember", "remember, 20 a second", "recall", "memory_window")
PROCESSOR = ("remember, processor", "recall, processor")
"""The mean time that the whole process worked for one, which other programs do not change."""
CONSOLE = Console(stderr=True)
QUIET = {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "PYTHONPATH": str(HERE)}

Figures: TypeAlias = Mapping[str, Any]


def work(folder: Path, number: int) -> Path:
    """The memories and the queries, which are runs of words of the first user's memories."""
    path = folder / f"work-{number}-{KEPT_BACK}.json"
    if not path.exists():
        texts = list(map(clean, paragraphs(number + KEPT_BACK)))
        asked = questions(texts[: max(number, KEPT_BACK) : USERS], QUESTIONS)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"texts": texts, "questions": asked}), encoding="utf-8")
    return path


def environment(folder: Path) -> Path:
    """The Python of an environment that holds the other memories; made where it is missing or out of date."""
    requirements = HERE / "requirements-memory.txt"
    wanted = requirements.read_text(encoding="utf-8")
    python, installed = folder / PYTHON, folder / "venv-memory" / "installed.txt"
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        CONSOLE.print("installing the other memories")
        venv.create(folder / "venv-memory", with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)]
        subprocess.run(command, check=True)
        installed.write_text(wanted, encoding="utf-8")
    return python


def measure(folder: Path, peer: str, number: int, conversations: int) -> Figures:
    """One memory library with so many memories, in a new store and a new process."""
    CONSOLE.print(f"{peer}: {number:,} memories")
    store = folder / "memory" / peer
    shutil.rmtree(store, ignore_errors=True)
    python = sys.executable if peer == OURS else str(environment(folder))
    command = [python, "-m", "peers.memories", peer, str(store), str(work(folder, number))]
    command += [str(number), str(conversations)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | QUIET)
    told = json.loads(done.stdout.splitlines()[-1])
    shutil.rmtree(store, ignore_errors=True)
    return {"name": f"{peer} {told['version']}", **told["times"]}


def lines(found: Mapping[int, Mapping[str, Figures]]) -> Iterator[list[str]]:
    """The rows of the table: theirs with the ratio to ours, above 1 where we are ahead."""
    for number, peers in found.items():
        for kind in KINDS:
            for percent in (50, 95):
                ours = percentile(peers[OURS], kind, percent)
                values = [percentile(each, kind, percent) for each in peers.values()]
                yield [f"{number:,} memories: {kind}, p{percent}", *(cell(value, ours) for value in values)]
        for kind in PROCESSOR:
            values = [percentile(each, kind, 50) for each in peers.values()]
            ours = percentile(peers[OURS], kind, 50)
            yield [f"{number:,} memories: {kind}", *(cell(value, ours) for value in values)]


def percentile(figures: Figures, kind: str, percent: int) -> float | None:
    """Of the times of one kind, if there are any."""
    return float(np.percentile(figures[kind], percent)) if figures.get(kind) else None


def cell(value: float | None, ours: float | None) -> str:
    """A figure with its ratio to ours."""
    if value is None or ours is None:
        return "-"
    return f"{value:.2f} ms" if value == ours else f"{value:,.2f} ms ({value / ours:.2g}x)"


def show(found: Mapping[int, Mapping[str, Figures]], *, markdown: bool) -> None:
    """The table, on the terminal or as Markdown."""
    names = [each["name"] for each in next(iter(found.values())).values()]
    if markdown:
        rows = [["", *names], ["---"] * (len(names) + 1), *lines(found)]
        print("\n".join(f"| {' | '.join(row)} |" for row in rows))
        return
    table = Table("", *names)
    for row in lines(found):
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[0, 10_000, 100_000])
    parser.add_argument("--conversations", type=int, default=10, help="of each of ten users")
    parser.add_argument("--peers", nargs="*", choices=PEERS[1:], default=PEERS[1:])
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    folder = given.folder.absolute()
    found = {
        number: {peer: measure(folder, peer, number, given.conversations) for peer in (OURS, *given.peers)}
        for number in given.memories
    }
    show(found, markdown=given.markdown)


if __name__ == "__main__":
    main()

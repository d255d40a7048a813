"""Agent memory, compared with other libraries: python benchmarks/memory.py --memories 0 10000 100000.

One memory is stored at a time, and one question asked at a time, in stores that hold more and more. With
`--evidence DIR`, the turns of conversations are stored, and the evidence of their questions is looked for
among the ten best, by everyone with the same vectors. Everyone works in a process of its own, one after the
other. What is measured and how is in benchmarks/README.md.
"""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from corpus import paragraphs, questions
from peers.memories import Said
from results import Result, option_parser
from rich.console import Console

from conspectus.bootstrap import local_counter
from conspectus.evals.datasets import CitedQuestion, read_conversation_set
from conspectus.model.records import NewDocument
from conspectus.ports import Vectors
from conspectus.providers.onnx_embedder import OnnxEmbedder
from conspectus.text.clean import clean

HERE = Path(__file__).parent
PYTHON = Path("venv-memory") / "bin" / "python"
OURS = "conspectus"
PEERS = (OURS, "langgraph", "mem0", "mcp-memory")
KEPT_BACK, QUESTIONS, USERS = 420, 210, 10
KINDS = ("remember", "remember, 20 a second", "recall", "memory_window", "recall in a new process")
PROCESSOR = ("remember, processor", "recall, processor", "recall in a new process, processor")
"""The mean time that the whole process worked for one, which other programs do not change."""
COLD_RUNS = 5
CONSOLE = Console(stderr=True)
QUIET = {
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "MCP_MEMORY_OFFLINE": "1",
    "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1",  # until the benchmark gives it its embedder
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(HERE),
}

Figures: TypeAlias = Mapping[str, Any]


def work(folder: Path, number: int) -> Path:
    """The memories and the queries, which are runs of words of the first user's memories."""
    path = folder / f"work-{number}-{KEPT_BACK}.json"
    if not path.exists():
        texts = list(map(clean, paragraphs(number + KEPT_BACK)))
        queries = questions(texts[: max(number, KEPT_BACK) : USERS], QUESTIONS)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"texts": texts, "questions": queries}), encoding="utf-8")
    return path


def environment(folder: Path) -> Path:
    """The Python of an environment that holds the other memories; made where it is missing or out of date."""
    requirements = HERE / "requirements-memory.txt"
    required = requirements.read_text(encoding="utf-8")
    python, installed = folder / PYTHON, folder / "venv-memory" / "installed.txt"
    if not installed.exists() or installed.read_text(encoding="utf-8") != required:
        CONSOLE.print("installing the other memories")
        venv.create(folder / "venv-memory", with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)]
        subprocess.run(command, check=True)
        installed.write_text(required, encoding="utf-8")
    return python


def measure(folder: Path, peer: str, number: int, conversations: int) -> Figures:
    """One memory library with so many memories, in a new store and a new process."""
    CONSOLE.print(f"{peer}: {number:,} memories")
    store = folder / "memory" / peer
    shutil.rmtree(store, ignore_errors=True)
    work_file = work(folder, number)
    report = told_by(folder, peer, "times", str(work_file), str(number), str(conversations))
    cold = [cold_recall(folder, peer, work_file) for _ in range(COLD_RUNS)]
    shutil.rmtree(store, ignore_errors=True)
    walls, processor = zip(*cold, strict=True)
    beside = {"recall in a new process": walls, "recall in a new process, processor": processor}
    return {"name": f"{peer} {report['version']}", **report["times"], **beside}


def told_by(folder: Path, peer: str, what: str, *rest: str) -> Any:
    """What a process of a memory library prints."""
    python = sys.executable if peer == OURS else str(environment(folder))
    command = [python, "-m", "peers.memories", peer, str(folder / "memory" / peer), what, *rest]
    # Installed packages have compiled bytecode, so ours may write its own.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=variables | QUIET)
    return json.loads(done.stdout.splitlines()[-1])


def cold_recall(folder: Path, peer: str, work_file: Path) -> tuple[float, float]:
    """Wall and processor milliseconds of a process that opens the store and asks one question."""
    before, begun = _children(), time.perf_counter()
    told_by(folder, peer, "cold", str(work_file))
    return 1_000 * (time.perf_counter() - begun), 1_000 * (_children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def evidence(folder: Path, peer: str, directory: Path) -> Figures:
    """Recall of the evidence of a set of conversations, and the times of storing and asking."""
    CONSOLE.print(f"{peer}: {directory.name}")
    shutil.rmtree(folder / "memory" / peer, ignore_errors=True)
    report = told_by(folder, peer, "evidence", *map(str, conversations_of(folder, directory)))
    shutil.rmtree(folder / "memory" / peer, ignore_errors=True)
    return {"name": f"{peer} {report['version']}", "recall@10": report["recall@10"], **report["times"]}


def conversations_of(folder: Path, directory: Path) -> tuple[Path, Path]:
    """The turns and questions of a set, and the vectors that the included model makes of them."""
    path = folder / f"evidence-{directory.name}.json"
    vectors = path.with_suffix(".npy")
    if not vectors.exists():
        data = read_conversation_set(directory)
        turns = [turn(user, message) for user, messages in data.conversations.items() for message in messages]
        queries = list(map(question, data.questions))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"turns": list(map(asdict, turns)), "questions": queries}), encoding="utf-8"
        )
        texts = [memory.spoken for memory in turns]
        np.save(vectors, asyncio.run(embedded(texts, [query["text"] for query in queries])))
    return path, vectors


def question(cited: CitedQuestion) -> dict[str, Any]:
    """A question of a set; names of turns repeat in its other conversations."""
    evidence = [f"{cited.conversation} {key}" for key in sorted(cited.evidence)]
    return {"text": cited.text, "user": cited.conversation, "evidence": evidence}


def turn(user: str, message: NewDocument) -> Said:
    """A turn of a set as a memory of the conversation's user."""
    at = message.occurred.isoformat() if isinstance(message.occurred, datetime) else None
    name, conversation = f"{user} {message.key}", message.thread or ""
    return Said(name, message.text, user, conversation, message.author, message.role, at)


async def embedded(texts: Sequence[str], questions: Sequence[str]) -> Vectors:
    """Vectors of texts, then those of questions."""
    embedder = OnnxEmbedder()
    rows = [await embedder.embed_documents(texts[at : at + 64]) for at in range(0, len(texts), 64)]
    query_rows = [await embedder.embed_query(text) for text in questions]
    return np.concatenate([*rows, np.array(query_rows)])


def tool_tokens(folder: Path, peer: str) -> str:
    """How many tools a memory has for agents, and the tokens of their names, descriptions and parameters."""
    tools = told_by(folder, peer, "tools")["tools"]
    count = local_counter("o200k_base")
    return f"{len(tools)}: {count(json.dumps(tools)):,}" if tools else "-"


def lines(figures: Mapping[int, Mapping[str, Figures]]) -> Iterator[list[str]]:
    """The rows of the table: theirs with the ratio to ours, above 1 where we are ahead."""
    for number, peers in figures.items():
        for kind in KINDS:
            for percent in (50, 95):
                ours = percentile(peers[OURS], kind, percent)
                values = [percentile(peer_figures, kind, percent) for peer_figures in peers.values()]
                yield [f"{number:,} memories: {kind}, p{percent}", *(cell(value, ours) for value in values)]
        for kind in PROCESSOR:
            values = [percentile(peer_figures, kind, 50) for peer_figures in peers.values()]
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


def evidence_lines(figures: Mapping[str, Mapping[str, Figures]]) -> Iterator[list[str]]:
    """The rows of the sets of conversations."""
    for name, peers in figures.items():
        yield [f"{name}: recall@10", *(f"{peer_figures['recall@10']:.1f}" for peer_figures in peers.values())]
        for kind, percent in product(("remember", "recall"), (50, 95)):
            values = [percentile(peer_figures, kind, percent) for peer_figures in peers.values()]
            ours = percentile(peers[OURS], kind, percent)
            yield [f"{name}: {kind}, p{percent}", *(cell(value, ours) for value in values)]


def main() -> None:
    """Measure what is asked for."""
    parser = option_parser(__doc__)
    parser.add_argument("--memories", type=int, nargs="*", default=[0, 10_000, 100_000])
    parser.add_argument("--evidence", type=Path, nargs="*", default=[], metavar="DIR", help="conversations")
    parser.add_argument("--tools", action="store_true", help="also count the tokens of tools")
    parser.add_argument("--conversations", type=int, default=10, help="of each of ten users")
    parser.add_argument("--peers", nargs="*", choices=PEERS[1:], default=PEERS[1:])
    parser.add_argument("--folder", type=Path, default=Path(".benchmarks"))
    arguments = parser.parse_args()
    folder, peers = arguments.folder.absolute(), (OURS, *arguments.peers)
    figures = {
        number: {peer: measure(folder, peer, number, arguments.conversations) for peer in peers}
        for number in arguments.memories
    }
    sets = {
        directory.name: {peer: evidence(folder, peer, directory) for peer in peers}
        for directory in arguments.evidence
    }
    rows = [*lines(figures), *evidence_lines(sets)]
    if arguments.tools:
        rows.append(["tools for agents, tokens", *(tool_tokens(folder, peer) for peer in peers)])
    named = next(iter((*figures.values(), *sets.values())), {peer: {"name": peer} for peer in peers})
    columns = ["", *(peer_figures["name"] for peer_figures in named.values())]
    title = "In brackets, theirs divided by ours."
    Result.of(title, columns, rows).shown("memory", save=arguments.save)


if __name__ == "__main__":
    main()

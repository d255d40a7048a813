"""Comparison with other embedded engines on the same work, in one run: python benchmarks/peers.py --chunks
100000.

Real paragraphs, stand-in vectors (the same for everyone), the same questions. Each engine works in a process
of its own, one after the other, on the same cores. What is measured and how is in benchmarks/README.md.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from corpus import paragraphs, questions
from peers.judge import Judge, Swept, nearest
from peers.report import Figures, result
from peers.work import DIMENSIONS, Effort, Vector, complete, load_questions, load_rows, save
from results import option_parser
from rich.console import Console
from vectors import vectors

from conspectus.providers.onnx_embedder import OnnxEmbedder
from conspectus.text.clean import clean

HERE = Path(__file__).parent
OURS = "conspectus"
PEERS = (OURS, "qdrant", "lancedb", "txtai", "chroma")
QUESTIONS = 300
KEPT_BACK = 100
KINDS = ("hybrid", "vectors", "filtered")
CONSOLE = Console(stderr=True)
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "LANCEDB_LOG": "error",
    "TOKENIZERS_PARALLELISM": "false",
}
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "LANCE_CPU_THREADS",
)


@dataclass(frozen=True)
class Run:
    """One run: where it happens, how many chunks, on how many cores, and each engine's Python."""

    folder: Path
    chunks: int
    threads: int
    python: Path

    @property
    def data(self) -> Path:
        """The work, stored between runs."""
        return self.folder / "data"

    def store(self, peer: str) -> Path:
        """The folder of an engine's rows."""
        return self.folder / peer

    def step(self, peer: str, step: str, efforts: object = None) -> Any:
        """Let one engine do one step in a fresh process."""
        CONSOLE.print(f"{peer}: {step}")
        command = [sys.executable if peer == OURS else str(self.python), "-m", "peers.measure", peer, step]
        command += ["--data", str(self.data), "--store", str(self.store(peer))]
        command += ["--chunks", str(self.chunks), "--threads", str(self.threads)]
        command += ["--efforts", json.dumps(efforts or {})]
        settings = QUIET | dict.fromkeys(THREADS, str(self.threads)) | {"PYTHONPATH": str(HERE)}
        # Installed packages have compiled bytecode, so ours may write its own.
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=variables | settings)
        return json.loads(done.stdout.splitlines()[-1])


def prepare(run: Run) -> None:
    """Create the work, once for each size: texts, their vectors and the queries with theirs."""
    if complete(run.data):
        return
    CONSOLE.print(f"reading {run.chunks:,} paragraphs and making their vectors")
    texts = list(dict.fromkeys(map(clean, paragraphs(run.chunks + KEPT_BACK))))
    queries = questions(texts[: run.chunks], QUESTIONS)
    save(run.data, texts, vectors(texts, run.folder.parent), queries, asyncio.run(_embedded(queries)))


async def _embedded(texts: list[str]) -> Vector:
    model = OnnxEmbedder()
    rows = await model.embed_documents(texts)
    await model.close()
    return rows


def environment(folder: Path) -> Path:
    """The Python of an environment that holds the other engines; made where it is missing or out of date."""
    required = (HERE / "requirements-peers.txt").read_text(encoding="utf-8")
    environment_folder = folder / "venv-peers"
    python, installed = environment_folder / "bin" / "python", environment_folder / "installed.txt"
    if not installed.exists() or installed.read_text(encoding="utf-8") != required:
        CONSOLE.print(f"installing the other engines into {environment_folder}")
        venv.create(environment_folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--requirement"]
        subprocess.run([*command, str(HERE / "requirements-peers.txt")], check=True)
        installed.write_text(required, encoding="utf-8")
    return python


def measure(run: Run, peers: list[str], rounds: int) -> dict[str, Figures]:
    """All steps of all engines; figures by engine, ours first."""
    built = {}
    for peer in peers:
        shutil.rmtree(run.store(peer), ignore_errors=True)
        built[peer] = run.step(peer, "build")
    rows = load_rows(run.data).part(0, run.chunks)
    judge = Judge(rows, load_questions(run.data))
    sweeps: dict[str, dict[str, Any]] = {peer: judged(judge, run.step(peer, "sweep")) for peer in peers}
    efforts = {peer: choose_efforts(sweeps[peer], sweeps[OURS]) for peer in peers}
    answers: dict[str, list[Any]] = {peer: [] for peer in peers}
    for turn in range(rounds):
        for peer in peers[turn % len(peers) :] + peers[: turn % len(peers)]:
            answers[peer].append(run.step(peer, "ask", efforts[peer]))
    return {
        f"{peer} {built[peer]['version']}": {
            **figures(answers[peer]),
            **recalls(sweeps[peer], efforts[peer]),
            "build": built[peer]["seconds"],
            "rate": run.chunks / built[peer]["seconds"],
            "disk": built[peer]["disk"],
            "insert": middle(run.step(peer, "insert")["times"]),
        }
        for peer in peers
    }


def judged(judge: Judge, swept: dict[str, Any]) -> dict[str, Any]:
    """The recall of every setting tried, and how often hybrid search found the source."""
    result: dict[str, Any] = {
        kind: [(effort, judge.recall(kind, answers)) for effort, answers in swept[kind]]
        for kind in ("vectors", "filtered")
    }
    return {**result, "sources": judge.sources(swept["hybrid"])}


def choose_efforts(sweep: dict[str, Any], ours: dict[str, Any]) -> dict[str, dict[str, Effort]]:
    """The settings to time: the defaults, and the setting whose recall is nearest ours."""
    matched = {kind: nearest(sweep[kind], default_recall(ours[kind]))[0] for kind in ("vectors", "filtered")}
    matched["hybrid"] = matched["vectors"]
    return {
        kind: {"default": {}, "matched": matched[kind]} if matched[kind] else {"default": {}}
        for kind in KINDS
    }


def recalls(sweep: dict[str, Any], efforts: dict[str, dict[str, Effort]]) -> dict[str, float | str | None]:
    """Recall at the defaults and at the chosen setting, with that setting's name."""
    result: dict[str, float | str | None] = {"hybrid sources": sweep["sources"]}
    for kind in ("vectors", "filtered"):
        effort = efforts[kind].get("matched", {})
        at = {json.dumps(setting): recall for setting, recall in sweep[kind]}
        result[f"{kind} default recall"] = default_recall(sweep[kind])
        result[f"{kind} matched recall"] = at[json.dumps(effort)]
        result[f"{kind} effort"] = ", ".join(f"{name} {value}" for name, value in effort.items()) or "default"
    return result


def default_recall(swept: Swept) -> float:
    """The recall of the first setting, which is the default."""
    return swept[0][1]


def figures(rounds: list[dict[str, Any]]) -> dict[str, float | None]:
    """Percentiles over all rounds; opening and memory as the middle of the rounds."""
    result: dict[str, float | None] = {
        name: middle([step[name] for step in rounds]) for name in ("cold", "open", "memory")
    }
    for kind in KINDS:
        for name in ("default", "matched"):
            key = f"{kind} {name}" if f"{kind} {name}" in rounds[0]["times"] else f"{kind} default"
            times = [time for step in rounds for time in step["times"][key]["whole"]]
            result[f"{kind} {name} p50"] = middle(times)
            result[f"{kind} {name} p95"] = float(np.percentile(times, 95)) if times else None
        result[f"{kind} inside"] = middle(
            [time for step in rounds for time in step["times"][f"{kind} default"]["inside"]]
        )
    return result


def middle(values: list[float]) -> float | None:
    """The median, None of nothing."""
    return float(median(values)) if values else None


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", nargs="+", choices=PEERS[1:], default=list(PEERS[1:]))
    parser.add_argument("--path", type=Path, default=Path(".benchmarks"))
    arguments = parser.parse_args()
    folder = arguments.path.absolute()
    run = Run(folder / f"peers-{arguments.chunks}", arguments.chunks, arguments.threads, environment(folder))
    prepare(run)
    figures = measure(run, [OURS, *arguments.peers], arguments.rounds)
    title = (
        f"{run.chunks:,} chunks, vectors of {DIMENSIONS}, {QUESTIONS} questions, rounds: {arguments.rounds}."
    )
    result(title, figures).shown(f"peers-{run.chunks}", save=arguments.save)


if __name__ == "__main__":
    main()

"""Time of the hooks of coding agents: whole processes beside a store of many memories.

python benchmarks/agent_hooks.py --memories 100000

Cold is a hook without a helper, warm one with it. The memories are paragraphs of the corpus in the sessions
of one repository, each query is words of one of them. `--embedder none` leaves vectors out.
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from corpus import paragraphs, questions
from results import Result, option_parser

from conspectus import sync
from conspectus.cli import agent_helper
from conspectus.cli import agent_hook as hook
from conspectus.cli.agent import hook_command
from conspectus.model.memory import NewMemory, Scope
from conspectus.settings import Settings
from conspectus.text.clean import clean

SESSIONS: Final = 200
BATCH: Final = 500
NOTES: Final = 20
PAUSE: Final = 0.3
"""Seconds between two prompts, in which the helper stores the first."""
LINES: Final = ("bare python", "cold start", "cold prompt", "warm start", "warm prompt")


def fill(data: Path, root: Path, number: int, settings: Settings) -> list[str]:
    """A data directory with that many memories of a repository; the queries, which are of these."""
    texts = list(map(clean, paragraphs(number)))
    if not (data / "filled").exists():
        with sync.open(data, settings=settings) as engine:
            notes = [NewMemory(text[:200], kind="note") for text in texts[:NOTES]]
            engine.memory.add(notes, scope=Scope(agent=str(root)))
            for at, batch in enumerate(_batches(texts)):
                scope = Scope(agent=str(root), conversation=f"session-{at % SESSIONS}")
                engine.memory.add([NewMemory(text, role="user") for text in batch], scope=scope)
            engine.documents.wait_until_embedded(collection="memory")
        (data / "filled").touch()
    queries: list[str] = questions(texts, 400)
    return queries


def _batches(texts: list[str]) -> Iterator[list[str]]:
    rest = iter(texts)
    while batch := list(islice(rest, BATCH)):
        yield batch


class Hooks:
    """The hook processes of one repository."""

    def __init__(self, data: Path, root: Path, settings: Settings) -> None:
        self._state, self._root = data / "agent", root
        self._environment = {**os.environ, "CONSPECTUS_EMBEDDER": settings.embedder}
        self._state.mkdir(exist_ok=True)

    def run(self, name: str, prompt: str = "") -> tuple[float, float, int]:
        """Wall and processor milliseconds of one hook, and the characters that it added."""
        event = {"session_id": "bench", "cwd": str(self._root), "hook_event_name": name, "prompt": prompt}
        command = hook_command("claude-code", self._state, 600)
        return _timed(command, json.dumps(event).encode(), self._environment)

    def processor(self) -> float:
        """Processor milliseconds that the helper has used."""
        lock = (self._state / agent_helper.LOCK).read_text()
        used = Path(f"/proc/{lock}/stat").read_text().rpartition(")")[2].split()[11:13]
        return 1000 * sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    def cold(self, name: str, prompt: str = "") -> tuple[float, float, int]:
        """The same without a helper; the one that it starts is ended again."""
        self.end()
        (self._state / hook.STARTED).unlink(missing_ok=True)
        return self.run(name, prompt)

    def warm(self) -> float:
        """Start the helper; the seconds until it answers."""
        self.end()
        (self._state / hook.STARTED).unlink(missing_ok=True)
        begun = time.perf_counter()
        self.run("SessionEnd")
        while not (self._state / hook.SOCKET).exists():
            time.sleep(0.02)
        return time.perf_counter() - begun

    def end(self) -> None:
        """End the helper, if one runs or starts."""
        lock = self._state / agent_helper.LOCK
        for _ in range(20):
            pid = int(lock.read_text() or 0) if lock.exists() else 0
            if pid or not (self._state / hook.STARTED).exists():
                break
            time.sleep(0.1)
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lock.unlink(missing_ok=True)
        (self._state / hook.SOCKET).unlink(missing_ok=True)


def _timed(command: list[str], payload: bytes, environment: Mapping[str, str]) -> tuple[float, float, int]:
    before, begun = _children(), time.perf_counter()
    done = subprocess.run(command, input=payload, env=environment, capture_output=True, check=True)
    return 1000 * (time.perf_counter() - begun), 1000 * (_children() - before), len(done.stdout)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(hooks: Hooks, queries: list[str], runs: int, cold_runs: int) -> Result:
    """Milliseconds of each kind of process; warm ones alternate with bare Python."""
    timings: dict[str, list[tuple[float, float, int]]] = {name: [] for name in LINES}
    for number in range(cold_runs):
        timings["cold start"].append(hooks.cold("SessionStart"))
        timings["cold prompt"].append(hooks.cold("UserPromptSubmit", queries[number % len(queries)]))
    ready = hooks.warm()
    answering = 0.0
    for number in range(runs):
        timings["bare python"].append(_timed([sys.executable, "-I", "-S", "-c", ""], b"", os.environ))
        timings["warm start"].append(hooks.run("SessionStart"))
        before = hooks.processor()
        timings["warm prompt"].append(hooks.run("UserPromptSubmit", queries[number % len(queries)]))
        answering += hooks.processor() - before
        time.sleep(PAUSE)
    hooks.end()
    rows = [[name, *_cells(samples)] for name, samples in timings.items() if samples]
    title = (
        f"{runs} warm and {cold_runs} cold processes. The helper was ready after {ready:.1f} s and used "
        f"{answering / max(runs, 1):.1f} ms of processor time for a prompt."
    )
    columns = ["", "p50", "p95", "processor time", "characters added", "with an answer"]
    return Result.of(title, columns, rows)


def _cells(timings: list[tuple[float, float, int]]) -> list[str]:
    walls = sorted(timing[0] for timing in timings)
    times = (
        statistics.median(walls),
        walls[min(len(walls) - 1, round(0.95 * len(walls)))],
        statistics.median(timing[1] for timing in timings),
    )
    sizes = [timing[2] for timing in timings]
    answered = f"{100 * sum(map(bool, sizes)) / len(sizes):.1f} %"
    return [
        *(f"{milliseconds:.1f} ms" for milliseconds in times),
        f"{statistics.median(sizes):,.0f}",
        answered,
    ]


def main() -> None:
    """Fill, measure, print the table."""
    parser = option_parser(__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--cold-runs", type=int, default=40)
    parser.add_argument("--embedder", default=Settings().embedder)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/conspectus-agent-hooks"))
    arguments = parser.parse_args()
    settings = replace(Settings(), embedder=arguments.embedder)
    folder = arguments.folder / f"{arguments.memories}-{arguments.embedder}"
    root, data = folder / "repository", folder / "data"
    (root / ".git").mkdir(parents=True, exist_ok=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    queries = fill(data, root, arguments.memories, settings)
    figures = measured(Hooks(data, root, settings), queries, arguments.runs, arguments.cold_runs)
    figures.shown("hooks", save=arguments.save)


if __name__ == "__main__":
    main()

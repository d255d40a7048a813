"""One step of one engine in a process of its own; the result is one line of JSON: see benchmarks/peers.py."""

import argparse
import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peers.work import Effort, Hits, Peer, Question, load_questions, load_rows

WARM_UP = 20
INSERTS = 20
PATIENCE_SECONDS = 30.0
Search = Callable[[Question, Effort], Hits | None]


def build(peer: Peer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds until everything can be found and is on disk, and its megabytes there."""
    rows = load_rows(arguments.data).part(0, arguments.chunks)
    start = time.perf_counter()
    peer.build(arguments.store, rows)
    took = time.perf_counter() - start
    peer.close()
    files = [file.stat().st_size for file in arguments.store.rglob("*") if file.is_file()]
    version = importlib.metadata.version(peer.package)
    return {"seconds": took, "disk": sum(files) / 2**20, "version": version}


def sweep(peer: Peer, arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of each setting, and of hybrid search with the defaults; recall is computed elsewhere."""
    with opened(peer, arguments.store):
        vectors = [[effort, _found(peer.vectors, arguments, effort)] for effort in [{}, *peer.efforts]]
        filtered = [
            [effort, _found(peer.filtered, arguments, effort)] for effort in [{}, *peer.filter_efforts]
        ]
        return {
            "vectors": vectors,
            "filtered": filtered,
            "hybrid": _found(peer.hybrid, arguments, {}),
        }


def ask(peer: Peer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Open and send all queries of every kind with every given setting: milliseconds of each answer.

    `cold` includes the imports, wherever an engine does them; `open` is a second time in the same process.
    """
    questions = load_questions(arguments.data)
    kinds = json.loads(arguments.efforts)
    start = time.perf_counter()
    with opened(peer, arguments.store):
        peer.vectors(questions[0], {})
        cold = (time.perf_counter() - start) * 1_000 + arguments.imported
        times = _round(peer, questions, kinds, "default")
        memory = resident_megabytes()
        times |= _round(peer, questions, kinds, "matched")
    again = type(peer)()
    start = time.perf_counter()
    with opened(again, arguments.store):
        again.vectors(questions[0], {})
        took = (time.perf_counter() - start) * 1_000
    return {"cold": cold, "open": took, "memory": memory, "times": times}


def insert(peer: Peer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds from handing in one new text with its vector until a search by that vector finds it."""
    rows = load_rows(arguments.data)
    times = []
    with opened(peer, arguments.store):
        peer.vectors(load_questions(arguments.data)[0], {})
        for number in rows.numbers[arguments.chunks : arguments.chunks + INSERTS]:
            one = rows.part(number, number + 1)
            start = time.perf_counter()
            peer.insert(one)
            _wait_for(peer, number, Question(one.texts[0], one.vectors[0]))
            times.append((time.perf_counter() - start) * 1_000)
    return {"times": times}


@contextmanager
def opened(peer: Peer, store: Path) -> Iterator[None]:
    """The peer with its store open."""
    peer.open(store)
    try:
        yield
    finally:
        peer.close()


def resident_megabytes() -> float:
    """Memory of this process, its own or mapped in, as the system counts it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def _round(
    peer: Peer, questions: list[Question], kinds: dict[str, dict[str, Effort]], name: str
) -> dict[str, dict[str, list[float]]]:
    searches = {"hybrid": peer.hybrid, "vectors": peer.vectors, "filtered": peer.filtered}
    return {
        f"{kind} {name}": _times(peer, searches[kind], questions, efforts[name])
        for kind, efforts in kinds.items()
        if name in efforts
    }


def _times(peer: Peer, search: Search, questions: list[Question], effort: Effort) -> dict[str, list[float]]:
    if search(questions[0], effort) is None:
        return {"whole": [], "inside": []}
    for question in questions[-WARM_UP:]:
        search(question, effort)
    totals, inside = [], []
    for question in questions:
        start = time.perf_counter()
        search(question, effort)
        totals.append((time.perf_counter() - start) * 1_000)
        inside += [] if peer.inside is None else [peer.inside]
    return {"whole": totals, "inside": inside}


def _wait_for(peer: Peer, number: int, question: Question) -> None:
    end = time.perf_counter() + PATIENCE_SECONDS
    while all(hit != number for hit, _ in peer.vectors(question, {})):
        if time.perf_counter() > end:
            raise SystemExit(f"row {number} was inserted but is not found")


def _found(search: Search, arguments: argparse.Namespace, effort: Effort) -> list[list[int]] | None:
    answers = [search(question, effort) for question in load_questions(arguments.data)]
    return None if answers[0] is None else [[number for number, _ in answer or []] for answer in answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer")
    parser.add_argument("step", choices=["build", "sweep", "ask", "insert"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--efforts", default="{}", help="JSON: kind → name → settings")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    start = time.perf_counter()
    adapter = importlib.import_module(f"peers.{arguments.peer}_adapter")
    arguments.imported = (time.perf_counter() - start) * 1_000
    steps = {"build": build, "sweep": sweep, "ask": ask, "insert": insert}
    result = steps[arguments.step](adapter.Adapter(), arguments)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

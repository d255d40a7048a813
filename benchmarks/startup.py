"""Start times of programs: whole processes, compared with bare Python and two libraries.

python benchmarks/startup.py --runs 9
"""

import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from results import Result, option_parser

COMMAND: Final = (sys.executable, "-c", "from conspectus.cli.entry import main; main()")
LONGEST: Final = 60.0


class Cost(NamedTuple):
    """Seconds of one process."""

    wall: float
    cpu: float


def run(*command: str, environment: Mapping[str, str]) -> Cost:
    """Run a process to its end. Raises CalledProcessError."""
    before, began = _children(), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return Cost(time.perf_counter() - began, _children() - before)


def serve(store: Path, *, environment: Mapping[str, str]) -> Cost:
    """Start a server and stop it when it reports that it is ready; the processor time includes the stop."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before, began = _children(), time.perf_counter()
    command = (*COMMAND, "serve", "--no-auth", "--port", str(port), "--data-dir", str(store))
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as it:
        try:
            while not _ready(port):
                _wait(it, began)
            wall = time.perf_counter() - began
        finally:
            it.terminate()
    return Cost(wall, _children() - before)


def _wait(server: "subprocess.Popen[bytes]", began: float) -> None:
    if server.poll() is not None or time.perf_counter() - began > LONGEST:
        raise RuntimeError("the server did not become ready")
    time.sleep(0.005)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=1.0):
            return True
    except OSError:
        return False


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(folder: Path, runs: int) -> list[list[str]]:
    """Print and return the minimum and the median of the runs, after one that is not counted."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    store, note = folder / "store", folder / "note.txt"
    note.write_text("The meeting moved to Thursday.\n", encoding="utf-8")
    run(*COMMAND, "add", str(note), "--data-dir", str(store), environment=environment)

    def program(text: str) -> Cost:
        return run(sys.executable, "-c", text, environment=environment)

    def command(*arguments: str) -> Cost:
        return run(*COMMAND, *arguments, environment=environment)

    figures: Mapping[str, Callable[[], Cost]] = {
        "python": lambda: program("pass"),
        "sqlalchemy, numpy": lambda: program("import sqlalchemy, numpy"),
        "import conspectus": lambda: program("import conspectus"),
        "conspectus.open": lambda: program("import conspectus; conspectus.open"),
        "conspectus --help": lambda: command("--help"),
        "conspectus search": lambda: command("search", "meeting", "--data-dir", str(store)),
        "conspectus serve": lambda: serve(store, environment=environment),
    }
    rows = []
    for name, figure in figures.items():
        figure()
        wall, cpu = zip(*(figure() for _ in range(runs)), strict=True)
        numbers = (min(wall), statistics.median(wall), min(cpu), statistics.median(cpu))
        rows.append([f"`{name}`", *(f"{1000 * number:.0f} ms" for number in numbers)])
    return rows


def main() -> None:
    """Measure in a folder that is deleted at the end."""
    parser = option_parser(__doc__)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), options.runs)
    columns = ["process", "wall: least", "median", "processor: least", "median"]
    title = f"{options.runs} runs after one that warms the caches."
    Result.of(title, columns, rows).shown("startup", save=options.save)


if __name__ == "__main__":
    main()

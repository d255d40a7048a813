"""What the console loads, and how long until it can be used, in Chromium: python benchmarks/console.py.

The server is `conspectus serve` over loopback on a store of random words without vectors. Each visit is that
of a new browser profile. The peer is the same question over HTTP, without a browser.
"""

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright
from results import Result, option_parser

import conspectus

QUESTION = "how do we restore a backup?"
ADDRESS = f"/console/playground?collection=big&query={QUESTION.replace(' ', '+')}"
VISITS = 7
BATCH = 5_000
WORDS = 40


@dataclass(frozen=True)
class Visit:
    """Compressed bytes, and milliseconds until the question field is there and until the window is drawn."""

    received: float
    usable: float
    drawn: float


def main() -> None:
    """Print a table for a store of so many passages."""
    options = option_parser(__doc__)
    options.add_argument("--chunks", type=int, default=10_000)
    arguments = options.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("install Debian's package chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        fill(Path(folder), arguments.chunks)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with served(Path(folder)) as address:
            alone = statistics.median(time_query(address) for _ in range(VISITS))
            visits = [visited(browser, address) for _ in range(VISITS)]
        browser.close()
    median = statistics.median
    rows = [
        ["until the question can be typed", f"{median(visit.usable for visit in visits):,.0f} ms"],
        ["until the window is drawn", f"{median(visit.drawn for visit in visits):,.0f} ms"],
        ["the same question over HTTP alone", f"{alone:,.0f} ms"],
    ]
    received = f"{median(visit.received for visit in visits):,.0f}"
    title = f"{arguments.chunks:,} passages, {len(visits)} visits; {received} compressed bytes at first."
    Result.of(title, ["", "median"], rows).shown("console", save=arguments.save)


def fill(folder: Path, chunks: int) -> None:
    """Store documents of random words of this project's pages, one passage each."""
    pages = (Path(__file__).resolve().parents[1] / "docs").rglob("*.md")
    words = " ".join(page.read_text(encoding="utf-8") for page in sorted(pages)).split()
    chance = random.Random(1)
    with conspectus.open(folder, settings=conspectus.Settings(embedder="none")) as engine:
        for begin in range(0, chunks, BATCH):
            documents = [
                conspectus.NewDocument(" ".join(chance.choices(words, k=WORDS)), key=f"{number}")
                for number in range(begin, min(begin + BATCH, chunks))
            ]
            engine.add(documents, collection="big")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of this store, which needs no key."""
    main = "from conspectus.cli.entry import main; main()"
    program = [sys.executable, "-c", main, "serve", "--no-auth", "--port", "0", "--json"]
    command = [*program, "--data-dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        lines = ""
        while not lines.rstrip().endswith("}"):
            lines += server.stdout.readline()
        try:
            yield json.loads(lines)["address"]
        finally:
            server.terminate()


def time_query(address: str) -> float:
    """Milliseconds of the question over HTTP alone."""
    body = {"query": QUESTION, "collection": "big", "max_tokens": 2048}
    begun = time.perf_counter()
    httpx.post(f"{address}/api/v1/explain", json=body).raise_for_status()
    return (time.perf_counter() - begun) * 1_000


def visited(browser: Browser, address: str) -> Visit:
    """One visit to the playground with a question, in a new profile."""
    context = browser.new_context()
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(f"{address}{ADDRESS}")
    page.get_by_label("Question").wait_for()
    usable = time.perf_counter() - begun
    page.locator(".map .block").first.wait_for()
    drawn = time.perf_counter() - begun
    assets = "performance.getEntriesByType('resource').filter(e => e.name.includes('/console/'))"
    received = page.evaluate(f"{assets}.reduce((sum, e) => sum + e.encodedBodySize, 0)")
    context.close()
    return Visit(received, usable * 1_000, drawn * 1_000)


if __name__ == "__main__":
    main()

"""Time from nothing to the first answer: a new environment, `pip install`, the quickstart of each library.

python benchmarks/first_answer.py --wheel dist/conspectus-*.whl

Each program runs without API keys and with no network, as in the quickstart of its library or the nearest to
it that needs no vectors of the caller's. An engine that needs a key or a download says so.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from results import Result, option_parser

TEXTS: Final = (
    "The nightly backup starts at two o'clock and is kept for thirty days.",
    "Ann is on call in the first week of December.",
    "The search service runs on three machines in Frankfurt.",
)
QUERY: Final = "When does the backup begin?"
PROGRAMS: Final[Mapping[str, tuple[str, str]]] = {
    "conspectus": ("", """
import conspectus
with conspectus.open("store") as engine:
    engine.add(TEXTS, wait=True)
    print(engine.retrieve(QUERY, limit=1).hits[0].chunk.text)
"""),
    "chromadb": ("chromadb==1.5.9", """
import chromadb
collection = chromadb.PersistentClient("store").create_collection("notes")
collection.add(ids=[str(n) for n in range(len(TEXTS))], documents=TEXTS)
print(collection.query(query_texts=[QUERY], n_results=1)["documents"][0][0])
"""),
    "lancedb (keywords)": ("lancedb==0.40.0", """
import lancedb
table = lancedb.connect("store").create_table("notes", [{"text": text} for text in TEXTS])
table.create_fts_index("text")
print(table.search(QUERY, query_type="fts").limit(1).to_list()[0]["text"])
"""),
    "txtai": ("txtai==9.14.0", """
from txtai import Embeddings
embeddings = Embeddings(path="sentence-transformers/all-MiniLM-L6-v2", content=True)
embeddings.index(TEXTS)
print(embeddings.search(QUERY, 1)[0]["text"])
"""),
    "txtai (keywords)": ("txtai==9.14.0", """
from txtai import Embeddings
embeddings = Embeddings(keyword=True, content=True)
embeddings.index(TEXTS)
print(embeddings.search(QUERY, 1)[0]["text"])
"""),
    "mem0": ("mem0ai==2.2.1", """
from mem0 import Memory
memory = Memory()
memory.add(TEXTS[0], user_id="ann")
print(memory.search(QUERY, filters={"user_id": "ann"}))
"""),
}  # fmt: skip
"""What pip installs and a program that prints an answer. Chroma, txtai and mem0: from their README."""


class Attempt(NamedTuple):
    """Seconds, what was installed, and what the program printed or its last error."""

    engine: str
    install_seconds: float
    packages: int
    megabytes: float
    answer_seconds: float
    answered: bool
    output: str


def attempt(engine: str, requirement: str, program: str, folder: Path) -> Attempt:
    """Install one library into a new environment and run its program. Raises CalledProcessError."""
    python = str(folder / "venv" / "bin" / "python")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-qqq", requirement], check=True)
    installed = time.perf_counter() - began
    listed = json.loads(subprocess.check_output([*pip, "list", "--format=json"]))
    (folder / "program.py").write_text(f"TEXTS = {list(TEXTS)!r}\nQUERY = {QUERY!r}\n{program}")
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    began = time.perf_counter()
    done = subprocess.run(
        [python, "program.py"],
        cwd=folder, env={**environment, "HOME": str(folder)}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    took = time.perf_counter() - began
    size = sum(path.stat().st_size for path in folder.joinpath("venv").rglob("*") if path.is_file())
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    return Attempt(
        engine, installed, len(listed) - 1, size / 1e6, took, done.returncode == 0, lines[-1].strip()
    )


def main() -> None:
    """Try each library once and print a table."""
    parser = option_parser(__doc__)
    parser.add_argument("--wheel", required=True, help="the wheel of this project")
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS), choices=PROGRAMS)
    options = parser.parse_args()
    rows = []
    for engine in options.only:
        requirement, program = PROGRAMS[engine]
        with tempfile.TemporaryDirectory() as folder:
            done = attempt(engine, requirement or options.wheel, program, Path(folder))
        rows.append(row(done))
    columns = ["engine", "install", "packages", "MB", "first answer", "prints"]
    title = "Without API keys and without a network; packages from a local mirror."
    Result.of(title, columns, rows).shown("first-answer", save=options.save)


def row(done: Attempt) -> list[str]:
    """The cells of one library."""
    text = done.output if done.answered else f"fails: {done.output[:120]}"
    answer = f"{done.answer_seconds:.1f} s" if done.answered else "none"
    size = f"{done.megabytes:.0f}"
    return [done.engine, f"{done.install_seconds:.0f} s", str(done.packages), size, answer, text]


if __name__ == "__main__":
    main()

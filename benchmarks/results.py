"""Results of benchmarks, a file each in docs/benchmarks/results, and their tables in the documentation.

A script that is called with --save writes its file. `python benchmarks/results.py` writes the tables of all
files between the marks `<!-- result: NAME -->` and `<!-- end of result -->` of the pages.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
FILES = PAGES / "results"
MARKED = re.compile(r"(<!-- result: ([\w-]+) -->\n).*?(<!-- end of result -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Result:
    """What one command measured: a table of texts, lines below it, and the figures as they were measured."""

    command: str
    date: str
    machine: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    below: Sequence[str] = ()
    figures: Any = None

    @classmethod
    def read(cls, name: str) -> "Result | None":
        """A result that was saved, None where there is none."""
        path = FILES / f"{name}.json"
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    @classmethod
    def of(cls, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], **others: Any) -> "Result":
        """A result of this command, measured now on this machine."""
        words = [Path(sys.argv[0]).name, *(word for word in sys.argv[1:] if word != "--save")]
        machine = f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        return cls(f"python benchmarks/{' '.join(words)}", date, machine, title, columns, rows, **others)

    def save(self, name: str) -> None:
        """Write the file, and the tables of the pages anew."""
        FILES.mkdir(exist_ok=True)
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (FILES / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
        write_pages()

    def markdown(self) -> str:
        """Command, date and machine, the table, and what stands below it."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from ("", f"`{self.command}`, {self.date}, {self.machine}. {self.title}", "")
        for row in (self.columns, ["---"] * len(self.columns), *self.rows):
            yield f"| {' | '.join(row)} |"
        yield from ("", *self.below, "") if self.below else ("",)


def with_tables(page: str) -> str:
    """A page with the tables of its results. Raises FileNotFoundError where a result has no file."""

    def table(found: re.Match[str]) -> str:
        result = Result.read(found[2])
        if result is None:
            raise FileNotFoundError(FILES / f"{found[2]}.json")
        return f"{found[1]}{result.markdown()}{found[3]}"

    return MARKED.sub(table, page)


def write_pages() -> None:
    """Write the tables into all pages."""
    for path in PAGES.glob("*.md"):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_pages()

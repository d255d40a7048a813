"""Looking for what was planted: in every file of a folder and in every table of a database."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.programs import ROOT
from tests.web.planting import PLANTED

KEPT = {
    *("collections", "sources", "jobs", "connections", "remote_people"),
    *("retentions", "alerts", "standing_summaries", "question_sets", "runs"),
    *("graph_nodes", "graph_edges", "graph_names", "graph_terms", "graph_events"),
}
"""Tables of what stays when documents are deleted, until their collection is."""


def planted_in(content: bytes) -> set[str]:
    """What was planted and is in these bytes, in lower case."""
    return {word.decode().lower() for word in PLANTED.findall(content)}


def in_files(folder: Path) -> set[str]:
    """What was planted and is in any file, or in its name; a file that goes meanwhile holds nothing."""
    words: set[str] = set()
    for path in folder.rglob("*"):
        words |= planted_in(path.name.encode())
        try:
            words |= planted_in(path.read_bytes()) if path.is_file() else set()
        except FileNotFoundError:
            continue
    return words


def in_tables(folder: Path) -> dict[str, set[str]]:
    """What was planted, by the tables of SQLite that hold it."""
    words_by_table = {}
    for path in folder.rglob("*.sqlite"):
        database = sqlite3.connect(path)
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            words_by_table[table] = planted_in(
                repr(database.execute(f'SELECT * FROM "{table}"').fetchall()).encode()
            )
        database.close()
    return {table: words for table, words in words_by_table.items() if words}


def tables_with(folder: Path, pattern: re.Pattern[bytes]) -> dict[str, set[str]]:
    """Return the tables of SQLite with the pattern in a row, each with its columns that have it."""
    matches: dict[str, set[str]] = {}
    for path in folder.rglob("*.sqlite"):
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = [dict(row) for row in database.execute(f'SELECT * FROM "{table}"')]
            cells = (cell for row in rows for cell in row.items())
            columns = {name for name, value in cells if pattern.search(repr(value).encode())}
            matches |= {table: columns} if columns else {}
        database.close()
    return matches


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in all databases of SQLite that have it."""
    rows: list[dict[str, Any]] = []
    for path in folder.rglob("*.sqlite"):
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            rows += [dict(row) for row in database.execute(f'SELECT * FROM "{table}"')]
        database.close()
    return rows


def in_store(folder: Path) -> tuple[dict[str, set[str]], set[str]]:
    """What was planted and is in tables of SQLite and in files, looked for by another process.

    A process that closes a file which it has read lets go of the locks that its SQLite has on it.
    """
    command = [sys.executable, "-m", "tests.web.finding", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    tables, files = json.loads(done.stdout)
    return {table: set(words) for table, words in tables.items()}, set(files)


def main(folder: Path) -> None:
    tables = {table: sorted(words) for table, words in in_tables(folder).items()}
    print(json.dumps([tables, sorted(in_files(folder))]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

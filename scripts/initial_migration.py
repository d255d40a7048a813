"""Write the SQL of the initial migration from the tables; after the first release it never changes again."""

from pathlib import Path

from conspectus.records import migrations
from conspectus.records.core.database import COUNTED, FIRST, history, statements

VERSIONS = Path(migrations.__file__).with_name("versions")


def main() -> None:
    """Write a script for each database."""
    for dialect in ("sqlite", "postgresql"):
        tables = [each for each in statements(dialect) if history.name not in each]
        columns, first = ", ".join(f'"{name}"' for name in FIRST), ", ".join(map(repr, FIRST.values()))
        rows = [f"INSERT INTO counters (name, {columns}) VALUES ('{name}', {first})" for name in COUNTED]
        text = "".join(f"{statement};\n" for statement in (*tables, *rows))
        (VERSIONS / f"0001_initial.{dialect}.sql").write_text(text, "utf-8")


if __name__ == "__main__":
    main()

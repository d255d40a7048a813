"""Write docs/reference/texts.md from the rules for text columns."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from conspectus.model.text_columns import TEXT_COLUMNS

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "texts.md"
HEAD: Final = """\
<!-- Made by scripts/texts_page.py from model/text_columns.py: change that, then run `make docs`. -->
# Texts of the store

What holds for each text column of the tables. Columns with ids, hashes and words of the program are left out.
The [rules for secrets](../operate/security.md#secrets-and-personal-data) say what text, alias, name, key and
account mean; a derived column is made from others, and an exempt one has its reason.

A purge of the collection deletes a text with its row, erases it from a row that stays, or leaves it.
[Trust](../concepts/trust.md) of a text is the level of its row or document, or programs may not write attacks
into it (checked), or only people see it. Backups and moves to another store contain every column.

| table | columns | secrets | purge | trust | reason |
| --- | --- | --- | --- | --- | --- |
"""


def make_page() -> str:
    """Return the page."""
    return HEAD + "".join(_make_lines())


def _make_lines() -> Iterator[str]:
    rows = [(*name.split("."), rule) for name, rule in TEXT_COLUMNS.items() if rule.screening != "program"]
    ordered = sorted(rows, key=lambda row: (row[0], str(row[2]), row[1]))
    for (table, rule), columns in groupby(ordered, key=lambda row: (row[0], row[2])):
        names = ", ".join(f"`{column}`" for _, column, _ in columns)
        rules = f"{rule.screening} | {rule.purging} | {rule.trusting}"
        yield f"| `{table}` | {names} | {rules} | {rule.reason} |\n"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")

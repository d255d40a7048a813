"""Every text column of the tables has rules; exemptions name their reason."""

from sqlalchemy import types

from conspectus.model.text_columns import TEXT_COLUMNS
from conspectus.records.erasure import ERASERS
from conspectus.records.tables.core import metadata

TEXT_TYPES = types.String | types.Text | types.LargeBinary | types.JSON
"""Vectors are bytes, too: texts can be reconstructed from some of them."""
COLUMNS = {
    f"{table.name}.{column.name}"
    for table in metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, TEXT_TYPES)
}


def test_every_text_column_has_rules() -> None:
    assert COLUMNS - TEXT_COLUMNS.keys() == set(), "declare them in model/text_columns.py"


def test_every_rule_is_of_a_column() -> None:
    assert TEXT_COLUMNS.keys() - COLUMNS == set()


def test_exemptions_name_their_reason() -> None:
    exempt = {
        name for name, rule in TEXT_COLUMNS.items() if rule.screening == "exempt" or rule.purging == "stays"
    }
    assert {name for name in exempt if not TEXT_COLUMNS[name].reason} == set()
    assert len(exempt) > 20


def test_a_column_without_rules_would_be_noticed() -> None:
    assert {*COLUMNS, "documents.summary"} - TEXT_COLUMNS.keys() == {"documents.summary"}


def test_columns_that_a_purge_erases_are_known_by_table() -> None:
    erased = {name.partition(".")[0] for name, rule in TEXT_COLUMNS.items() if rule.purging == "erased"}
    assert erased == set(ERASERS)

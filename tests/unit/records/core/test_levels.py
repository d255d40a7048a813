"""Levels of trust in SQL: an UPDATE never raises one."""

from itertools import product

from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert, select, update

from conspectus.model.trust import ORIGINS, TRUST
from conspectus.records.core.levels import level_below, lower_origin, lower_trust

rows = Table(
    "rows",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("origin", String),
    Column("trust", String),
)
LEVELS = list(product(ORIGINS, TRUST))
PAIRS = list(enumerate(product(LEVELS, LEVELS)))


def test_an_update_lowers_as_python_does_and_never_raises() -> None:
    """What is quarantined is the exception: its level is in the metadata, and the writer compares that."""
    change = update(rows).values(trust=lower_trust(rows.c.trust), origin=lower_origin(rows.c.origin))
    with create_engine("sqlite://").begin() as connection:
        rows.create(connection)
        stored = [{"id": number, "origin": old[0], "trust": old[1]} for number, (old, _) in PAIRS]
        connection.execute(insert(rows), stored)
        for number, (_, new) in PAIRS:
            claimed = {"new_origin": new[0], "new_trust": new[1]}
            connection.execute(change.where(rows.c.id == number), claimed)
        after = {number: (origin, trust) for number, origin, trust in connection.execute(select(rows))}
    for number, (old, new) in PAIRS:
        expected = level_below(new, old)
        if old[1] == "quarantined":
            assert after[number] == (expected[0], new[1])
        else:
            assert after[number] == expected
            assert TRUST.index(after[number][1]) >= TRUST.index(old[1])

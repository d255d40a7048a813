"""What may stand in the schema of a store's file, so that nothing else in a file is ever run."""

import re
from functools import cache

from conspectus.records.core import schema

_TOKEN = re.compile(r"'[^']*'|\w+|[^\w\s]")
_STATISTICS = frozenset(
    {"CREATE TABLE sqlite_stat1(tbl,idx,stat)", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"}
)
"""What SQLite's own ANALYZE makes."""


def is_expected(statement: str) -> bool:
    """Whether a statement is made of nothing but the words and signs that make the tables of a store.

    The words alone leave no way to write a view, a trigger, a virtual table, a call or a generated column,
    and do not depend on the order in which migrations came to the same tables.
    """
    return statement in _STATISTICS or _words().issuperset(_TOKEN.findall(statement))


@cache
def _words() -> frozenset[str]:
    return frozenset(word for each in schema.statements("sqlite") for word in _TOKEN.findall(each))

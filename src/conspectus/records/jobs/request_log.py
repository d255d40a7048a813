"""The log of calls to model providers."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, func, insert, select

from conspectus.errors import InvalidInput
from conspectus.model.jobs import EmbeddingRequest, RequestTotals
from conspectus.records.core.dialects import total
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import embedding_requests as requests
from conspectus.text.times import from_microseconds, to_microseconds

_LAST = select(func.coalesce(func.max(requests.c.id), 0))
COLUMNS = tuple(requests.c[column.name] for column in requests.c if column.name != "id")


class SqlRequestLog:
    """Every method of the port `RequestLog` as one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store them; their ids are given here."""
        if requests:
            await self._write(partial(_add, logged=requests))

    async def page(self, *, after: int | None = None, limit: int = 100) -> Sequence[EmbeddingRequest]:
        """Requests, newest first, older than the id `after`. Raises InvalidInput."""
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        return await self._read(partial(_page, after=after, limit=limit))

    async def totals(self, since: datetime) -> Sequence[RequestTotals]:
        """Sums by kind and model since an instant."""
        return await self._read(partial(_totals, since=since))


def _add(connection: Connection, logged: Sequence[EmbeddingRequest]) -> None:
    last: int = connection.execute(_LAST).scalar_one()
    rows = [
        {column.name: getattr(each, column.name) for column in COLUMNS}
        | {"created": to_microseconds(each.created), "id": number}
        for number, each in enumerate(logged, start=last + 1)
    ]
    connection.execute(insert(requests), rows)


def _page(connection: Connection, after: int | None, limit: int) -> list[EmbeddingRequest]:
    chosen = select(requests).order_by(requests.c.id.desc()).limit(limit)
    if after is not None:
        chosen = chosen.where(requests.c.id < after)
    return [
        EmbeddingRequest(**{**row._mapping, "created": from_microseconds(row.created)})
        for row in connection.execute(chosen)
    ]


def _totals(connection: Connection, since: datetime) -> list[RequestTotals]:
    by = (requests.c.kind, requests.c.model)
    errors = func.count().filter(requests.c.status == "error")
    sums = (total(requests.c.inputs), total(requests.c.tokens), func.avg(requests.c.latency))
    chosen = select(*by, func.count(), errors, *sums).where(requests.c.created >= to_microseconds(since))
    return [RequestTotals(*row) for row in connection.execute(chosen.group_by(*by).order_by(*by))]

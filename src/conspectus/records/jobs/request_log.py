"""The log of requests to model providers."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, func, insert, select

from conspectus.errors import InvalidInput
from conspectus.model.jobs import EmbeddingRequest, RequestTotals
from conspectus.records.core.dialects import integer_sum
from conspectus.records.core.rows import columns_of, to_model
from conspectus.records.core.statements import fetch_scalar
from conspectus.records.core.store_methods import SqlStore, reading
from conspectus.records.tables.jobs import embedding_requests as requests
from conspectus.text.times import to_microseconds

_LAST = select(func.coalesce(func.max(requests.c.id), 0))


def _add(connection: Connection, logged: Sequence[EmbeddingRequest]) -> None:
    last: int = fetch_scalar(connection, _LAST)
    rows = [{**columns_of(request), "id": number} for number, request in enumerate(logged, start=last + 1)]
    connection.execute(insert(requests), rows)


def _page(connection: Connection, *, after: int | None = None, limit: int = 100) -> list[EmbeddingRequest]:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    query = select(requests).order_by(requests.c.id.desc()).limit(limit)
    if after is not None:
        query = query.where(requests.c.id < after)
    return [to_model(EmbeddingRequest, row._mapping) for row in connection.execute(query)]


def _totals(connection: Connection, since: datetime) -> list[RequestTotals]:
    by = (requests.c.kind, requests.c.model)
    errors = func.count().filter(requests.c.status == "error")
    sums = (integer_sum(requests.c.inputs), integer_sum(requests.c.tokens), func.avg(requests.c.latency))
    query = select(*by, func.count(), errors, *sums).where(requests.c.created >= to_microseconds(since))
    return [RequestTotals(*row) for row in connection.execute(query.group_by(*by).order_by(*by))]


class SqlRequestLog(SqlStore):
    """The methods of the port `RequestLog`, each as one transaction."""

    async def add(self, requests: Sequence[EmbeddingRequest]) -> None:
        """Store requests. Their ids are assigned here."""
        if requests:
            await self.transactions.write(partial(_add, logged=requests), locks={"embedding requests"})

    page = reading(_page)
    totals = reading(_totals)

"""Requests of a sync at their pace and within their budget, at a server that follows a script."""

from collections.abc import Mapping

import pytest

from conspectus.errors import RequestBudgetSpent
from conspectus.ingest.metered_requests import MAX_RETRY_AFTER_SECONDS, MeteredFetcher
from conspectus.ports.web import Fetched


class Server:
    """A server with a clock: it notes when each request came, and is busy when told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.came: list[float] = []
        self.busy_answers: list[str] = []

    async def fetch(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Fetched:
        self.came.append(self.now - 100.0)
        if self.busy_answers:
            return Fetched(url, 429, "", None, b"", {"retry-after": self.busy_answers.pop(0)})
        return Fetched(url, 200, "", None, b"")

    async def close(self) -> None:
        """Hold nothing."""

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def meter(self, per_second: float = 0.0, budget: int = 1_000) -> MeteredFetcher:
        return MeteredFetcher(
            self, per_second=per_second, budget=budget, wait=self.pass_time, clock=lambda: self.now
        )


async def test_requests_are_spread_after_a_burst() -> None:
    server = Server()
    meter = server.meter(per_second=2.0)
    for _ in range(7):
        await meter.fetch("http://host/")
    assert server.came == [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.5]
    assert (meter.requests, meter.waited_seconds) == (7, 1.5)
    server.now += 60.0
    for _ in range(5):
        await meter.fetch("http://host/")
    assert server.came[7:] == [61.5] * 4 + [62.0]


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("7", 7.0), ("900", MAX_RETRY_AFTER_SECONDS), ("soon", 0.0)]
)
async def test_the_next_request_waits_as_long_as_the_server_asks(retry_after: str, seconds: float) -> None:
    server = Server()
    server.busy_answers = [retry_after]
    meter = server.meter()
    assert [(await meter.fetch("http://host/")).status for _ in range(3)] == [429, 200, 200]
    assert server.came == [0.0, seconds, seconds]


async def test_no_request_is_sent_beyond_the_budget() -> None:
    server = Server()
    meter = server.meter(budget=2)
    for _ in range(2):
        await meter.fetch("http://host/")
    with pytest.raises(RequestBudgetSpent, match="all 2 requests"):
        await meter.fetch("http://host/")
    assert (len(server.came), meter.requests) == (2, 2)

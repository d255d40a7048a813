"""Requests at the pace that servers ask for."""

from collections.abc import Mapping, Sequence

import pytest

from conspectus.connectors import PacedFetcher
from conspectus.connectors.pacing import MAX_WAIT_SECONDS
from conspectus.ports.web import Fetched


class ScriptedFetcher:
    """Answers with statuses and `Retry-After` in turn; the last answer stays."""

    def __init__(self, answers: Sequence[tuple[int, str | None]]) -> None:
        self.answers = list(answers)
        self.requests = 0

    async def fetch(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Fetched:
        self.requests += 1
        status, retry_after = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer_headers = {} if retry_after is None else {"retry-after": retry_after}
        return Fetched(url, status, "", None, b"", answer_headers)

    async def close(self) -> None:
        raise AssertionError("whoever opened it closes it")


@pytest.mark.parametrize(
    ("answers", "status", "waits"),
    [
        ([(200, None)], 200, []),
        ([(404, "9")], 404, []),
        ([(429, "7"), (503, None), (200, None)], 200, [7.0, 2.0]),
        ([(429, "999999999")], 429, [MAX_WAIT_SECONDS] * 4),
        ([(503, "Wed, 21 Oct 2026 07:28:00 GMT")], 503, [1.0, 2.0, 4.0, 8.0]),
    ],
)
async def test_busy_answers_are_waited_out(
    answers: Sequence[tuple[int, str | None]], status: int, waits: list[float]
) -> None:
    seconds: list[float] = []

    async def wait(duration: float) -> None:
        seconds.append(duration)

    scripted = ScriptedFetcher(answers)
    fetcher = PacedFetcher(scripted, wait=wait)
    assert (await fetcher.fetch("https://example.org")).status == status
    assert (seconds, scripted.requests) == (waits, len(waits) + 1)
    await fetcher.close()

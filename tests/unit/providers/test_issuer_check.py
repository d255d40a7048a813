"""What an operator is told of an issuer: its clock, and whether the command line can log in."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.support.web_server import Answer, ScriptedServer

from conspectus.providers.issuer_check import IssuerCheck
from conspectus.providers.issuer_metadata import METADATA_PATH
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ENDPOINT = {"device_authorization_endpoint": "https://login.example.org/device"}


async def find_problems(answer: Answer, *, has_device_client: bool = True) -> list[str]:
    async with ScriptedServer({METADATA_PATH: answer}) as server:
        fetcher = WebFetcher(FetchLimits(1_000_000, 0, 10.0, ("127.0.0.1",)))
        try:
            check = IssuerCheck(
                server.base, fetcher, max_skew=60, has_device_client=has_device_client, now=lambda: NOW
            )
            return [*await check.find_problems()]
        finally:
            await fetcher.close()


def answer_with(metadata: Any, **headers: str) -> Answer:
    return Answer(json.dumps(metadata).encode(), 200, "application/json", headers)


@pytest.mark.parametrize("seconds", [-61, -60, 0, 60, 61, 7_200])
async def test_clocks_that_differ_are_named(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    problems = await find_problems(answer_with(ENDPOINT, Date=date))
    if abs(seconds) <= 60:
        assert problems == []
    else:
        [sentence] = problems
        assert f"differ by {abs(seconds):,} s" in sentence


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 30 Nov 2026 12:00:00 -0000"])
async def test_a_date_that_says_nothing_is_no_problem(date: str) -> None:
    assert await find_problems(answer_with(ENDPOINT, Date=date)) == []


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "no `device_authorization_endpoint` with https"),
        ({"device_authorization_endpoint": "http://login.example.org/d"}, "with https"),
        ({**ENDPOINT, "grant_types_supported": ["authorization_code"]}, "`grant_types_supported`"),
    ],
)
async def test_a_missing_device_flow_is_named_if_somebody_needs_it(
    metadata: dict[str, Any], problem: str
) -> None:
    [sentence] = await find_problems(answer_with(metadata))
    assert sentence.startswith("`conspectus login` does not work: ")
    assert problem in sentence
    assert await find_problems(answer_with(metadata), has_device_client=False) == []


@pytest.mark.parametrize("answer", [Answer(b"[]"), Answer(status=404), Answer(b"{}", broken=True)])
async def test_an_issuer_that_is_away_is_reported_by_others(answer: Answer) -> None:
    assert await find_problems(answer, has_device_client=False) == []

"""A server that is killed with -9: what it had to check, the next one checks, and nothing is told twice."""

import time
from pathlib import Path

import httpx
import pytest

from tests.web.test_serve import KEY, serving


def told(client: httpx.Client, count: int) -> list[str]:
    """What was told, when there is so much of it."""
    for _ in range(1_200):
        found = [each["text"] for each in client.get("/alerts/events?limit=1000").json()]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise TimeoutError


def say(client: httpx.Client, *texts: str, start: float) -> None:
    captions = [{"text": text, "start": start + 60 * place} for place, text in enumerate(texts)]
    assert client.post("/streams/gate/captions", json={"captions": captions}).status_code == 201


@pytest.mark.slow
def test_a_served_store_checks_its_alerts_also_after_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        (key,) = KEY.findall(first.said)
        with first.client(key) as client:
            say(client, "a fire before", start=0)
            assert client.post("/alerts", json={"name": "fire", "query": "fire"}).status_code == 200
            say(client, "fire one", "nothing", "fire two", start=600)
            assert told(client, 2) == ["fire one", "fire two"]
            say(client, *(f"fire {number}" for number in range(200)), start=6_000)
            first.process.kill()
    with serving(tmp_path) as second, second.client(key) as client:
        say(client, "fire at last", start=600_000)
        everything = ["fire one", "fire two", *(f"fire {number}" for number in range(200)), "fire at last"]
        assert told(client, len(everything)) == everything

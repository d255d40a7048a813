"""A server that is killed with -9: what it had to check, the next one checks, and nothing is told twice."""

import time
from pathlib import Path

import httpx
import pytest

from tests.web.test_serve import KEY, running_server


def wait_for_events(client: httpx.Client, count: int) -> list[str]:
    """What was told, when there is so much of it."""
    for _ in range(1_200):
        texts = [event["text"] for event in client.get("/alerts/events?limit=1000").json()]
        if len(texts) >= count:
            return texts
        time.sleep(0.05)
    raise TimeoutError


def add_captions(client: httpx.Client, *texts: str, start: float) -> None:
    captions = [{"text": text, "start": start + 60 * number} for number, text in enumerate(texts)]
    assert client.post("/streams/gate/captions", json={"captions": captions}).status_code == 201


@pytest.mark.slow
def test_a_served_store_checks_its_alerts_also_after_a_kill(tmp_path: Path) -> None:
    with running_server(tmp_path) as first:
        (key,) = KEY.findall(first.announcement)
        with first.client(key) as client:
            add_captions(client, "a fire before", start=0)
            assert client.post("/alerts", json={"name": "fire", "query": "fire"}).status_code == 200
            add_captions(client, "fire one", "nothing", "fire two", start=600)
            assert wait_for_events(client, 2) == ["fire one", "fire two"]
            add_captions(client, *(f"fire {number}" for number in range(200)), start=6_000)
            first.process.kill()
    with running_server(tmp_path) as second, second.client(key) as client:
        add_captions(client, "fire at last", start=600_000)
        everything = ["fire one", "fire two", *(f"fire {number}" for number in range(200)), "fire at last"]
        assert wait_for_events(client, len(everything)) == everything

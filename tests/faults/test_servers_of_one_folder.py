"""Two server processes on one data directory: what one stores the other finds at once, and one may die."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx

from tests.faults.test_rolling import asking_anew, children
from tests.waiting import PATIENCE, blocking_until
from tests.web.test_serve import Process, serving

CLIENTS = "ghjk"
LETTERS = ("abcd", "ef")
ANSWERED = 3
"""Fresh connections by which each word is asked for, so that it meets both processes."""


def sent(anew: httpx.Client, path: str, body: object, name: str) -> httpx.Response:
    """Send a request by a connection of its own, again if the process died that had it."""
    for _ in range(20):
        try:
            return anew.post(f"/api/v1{path}", json=body, headers={"X-Request-Id": name}, timeout=PATIENCE)
        except httpx.TransportError:
            continue
    raise TimeoutError(name)


def kept(anew: httpx.Client, letters: str, client: str) -> None:
    """Write words and ask for each at once; each is there exactly once, whoever answers."""
    for letter in letters:
        word = f"tide{letter}{client}"
        made = sent(anew, "/collections/wiki/documents", {"documents": [{"text": word, "key": word}]}, word)
        assert made.status_code == 201, made.text
        for ask in range(ANSWERED):
            found = sent(anew, "/search", {"query": word, "collection": "wiki"}, f"{word}.{ask}")
            assert [hit["chunk"]["text"] for hit in found.json()["hits"]] == [word]


def told(log: str) -> dict[str, int]:
    """Which process answered, by the name of the request."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return {each["request_id"]: each["worker"] for each in lines if each["event"] == "request"}


def ingested(server: Process, word: str) -> str:
    """How a job ended that takes in a file."""
    with server.client(None) as client:
        made = client.post("/collections/wiki/ingest/files", files={"files": (f"{word}.txt", word.encode())})
        assert made.status_code == 202, made.text
        return str(client.get(f"/jobs/{made.json()['id']}", params={"wait": 30}).json()["state"])


def test_all_is_found_at_once_and_goes_on_whichever_process_dies(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--no-auth", "--workers", "2") as server,
        asking_anew(server) as anew,
        ThreadPoolExecutor(len(CLIENTS)) as clients,
    ):
        sent(anew, "/collections", {"name": "wiki"}, "made")
        before = sorted(children(server.process.pid))
        list(clients.map(partial(kept, anew, LETTERS[0]), CLIENTS))
        assert ingested(server, "first") == "succeeded"
        for letters, victim in zip(("", LETTERS[1]), before, strict=True):
            writing = clients.map(partial(kept, anew, letters), CLIENTS)
            os.kill(victim, signal.SIGKILL)
            list(writing)
            blocking_until(lambda: len(children(server.process.pid)) == 2)
            assert ingested(server, f"after{victim}") == "succeeded"
        answered = told(server.end(signal.SIGINT))
        assert server.process.returncode == 0
    crossed = [name for name, worker in answered.items() if worker != answered[name.partition(".")[0]]]
    assert crossed

"""Two server processes on one data directory: what one stores the other finds at once, and one may die."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.faults.test_rolling import LONG, children, until
from tests.web.test_serve import Process, serving

CLIENTS = "ghjk"
LETTERS = "abcdef"
ANSWERED = 3
"""Fresh connections by which each word is asked for, so that it meets both processes."""


def sent(server: Process, path: str, body: object, name: str) -> httpx.Response:
    """Send a request by a connection of its own, again if the process died that had it."""
    for _ in range(20):
        try:
            return httpx.post(
                f"{server.address}/api/v1{path}", json=body, headers={"X-Request-Id": name}, timeout=LONG
            )
        except httpx.TransportError:
            continue
    raise TimeoutError(name)


def kept(server: Process, client: int) -> None:
    """Write words and ask for each at once; each is there exactly once, whoever answers."""
    for letter in LETTERS:
        word = f"tide{letter}{CLIENTS[client]}"
        made = sent(server, "/collections/wiki/documents", {"documents": [{"text": word, "key": word}]}, word)
        assert made.status_code == 201, made.text
        for ask in range(ANSWERED):
            found = sent(server, "/search", {"query": word, "collection": "wiki"}, f"{word}.{ask}")
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


def test_what_one_process_stores_the_next_request_to_another_finds(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", "--workers", "2") as server:
        sent(server, "/collections", {"name": "wiki"}, "made")
        with ThreadPoolExecutor(len(CLIENTS)) as clients:
            list(clients.map(kept, [server] * len(CLIENTS), range(len(CLIENTS))))
        answered = told(server.end())
        assert server.process.returncode == 0
    crossed = [name for name, worker in answered.items() if worker != answered[name.partition(".")[0]]]
    assert crossed


def test_one_process_dies_while_both_are_written_to(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", "--workers", "2", log_level="error") as server:
        sent(server, "/collections", {"name": "wiki"}, "made")
        before = children(server.process.pid)
        with ThreadPoolExecutor(len(CLIENTS)) as clients:
            writing = clients.map(kept, [server] * len(CLIENTS), range(len(CLIENTS)))
            os.kill(min(before), signal.SIGKILL)
            list(writing)
        until(lambda: len(children(server.process.pid) - before) == 1)
        server.end()
        assert server.process.returncode == 0


def test_jobs_go_on_whichever_process_dies(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", "--workers", "2", log_level="error") as server:
        sent(server, "/collections", {"name": "wiki"}, "made")
        assert ingested(server, "first") == "succeeded"
        for victim in sorted(children(server.process.pid)):
            os.kill(victim, signal.SIGKILL)
            until(lambda: len(children(server.process.pid)) == 2)
            assert ingested(server, f"after{victim}") == "succeeded"
        server.end()
        assert server.process.returncode == 0

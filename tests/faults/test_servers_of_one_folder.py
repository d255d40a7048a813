"""Two server processes on one data directory: what one stores the other finds at once, and one may die."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx

from tests.faults.test_rolling import child_processes, open_reconnecting_client
from tests.waiting import PATIENCE, blocking_until
from tests.web.test_serve import Process, read_line_with, running_server

CLIENTS = "ghjk"
LETTERS = ("abcd", "ef")
ANSWERED = 3
"""Fresh connections by which each word is asked for, so that it meets both processes."""


def post_again(anew: httpx.Client, path: str, body: object, name: str) -> httpx.Response:
    """Send a request by a connection of its own, again if the process died that had it."""
    for _ in range(20):
        try:
            return anew.post(f"/api/v1{path}", json=body, headers={"X-Request-Id": name}, timeout=PATIENCE)
        except httpx.TransportError:
            continue
    raise TimeoutError(name)


def write_and_search(anew: httpx.Client, letters: str, client: str) -> None:
    """Write words and ask for each at once; each is there exactly once, whoever answers."""
    for letter in letters:
        word = f"tide{letter}{client}"
        written = post_again(
            anew, "/collections/wiki/documents", {"documents": [{"text": word, "key": word}]}, word
        )
        assert written.status_code == 201, written.text
        for ask in range(ANSWERED):
            answer = post_again(anew, "/search", {"query": word, "collection": "wiki"}, f"{word}.{ask}")
            assert [hit["chunk"]["text"] for hit in answer.json()["hits"]] == [word]


def workers_by_request(log: str) -> dict[str, int]:
    """Which process answered, by the name of the request."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return {event["request_id"]: event["worker"] for event in lines if event["event"] == "request"}


def wait_for_answers_of_both(server: Process, anew: httpx.Client) -> None:
    """Ask until both processes have answered: the second may still be starting."""
    workers: set[int] = set()

    def have_both_answered() -> bool:
        name = f"start{uuid4()}"
        post_again(anew, "/search", {"query": "tide", "collection": "wiki"}, name)
        workers.update(workers_by_request(read_line_with(server.process, name)).values())
        return len(workers) == 2

    blocking_until(have_both_answered)


def ingest_file(server: Process, word: str) -> str:
    """How a job ended that takes in a file."""
    with server.client(None) as client:
        accepted = client.post(
            "/collections/wiki/ingest/files", files={"files": (f"{word}.txt", word.encode())}
        )
        assert accepted.status_code == 202, accepted.text
        return str(client.get(f"/jobs/{accepted.json()['id']}", params={"wait": 30}).json()["state"])


def test_all_is_found_at_once_and_goes_on_whichever_process_dies(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, "--no-auth", "--workers", "2") as server,
        open_reconnecting_client(server) as anew,
        ThreadPoolExecutor(len(CLIENTS)) as clients,
    ):
        post_again(anew, "/collections", {"name": "wiki"}, "made")
        wait_for_answers_of_both(server, anew)
        before = sorted(child_processes(server.process.pid))
        list(clients.map(partial(write_and_search, anew, LETTERS[0]), CLIENTS))
        assert ingest_file(server, "first") == "succeeded"
        for letters, victim in zip(("", LETTERS[1]), before, strict=True):
            writing = clients.map(partial(write_and_search, anew, letters), CLIENTS)
            os.kill(victim, signal.SIGKILL)
            list(writing)
            blocking_until(lambda: len(child_processes(server.process.pid)) == 2)
            assert ingest_file(server, f"after{victim}") == "succeeded"
        answered = workers_by_request(server.end(signal.SIGINT))
        assert server.process.returncode == 0
    crossed = [name for name, worker in answered.items() if worker != answered[name.partition(".")[0]]]
    assert crossed

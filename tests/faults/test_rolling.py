"""A server of several processes: none of its clients notices that one is replaced, and a dead one is."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENCE, blocking_until
from tests.web.test_serve import PROGRAM, Process, environment, read_line_with, running_server

QUIET = {"log_level": "error", "lock_timeout_seconds": 60}
WORKERS = 2
CLIENTS = 4


def child_processes(process: int) -> set[int]:
    """The processes that a process started and that live."""
    processes = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"\nPPid:\t{process}\n" in text and "\nState:\tZ" not in text:
            processes.add(int(status.parent.name))
    return processes


def read_metric(client: httpx.Client, name: str) -> float:
    """One of the numbers that are counted over all processes."""
    text = client.get("/metrics").text
    return sum(float(sample) for sample in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


def open_reconnecting_client(server: Process) -> httpx.Client:
    """A client that connects for every request, so that any process may answer."""
    return httpx.Client(base_url=server.address, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))


async def write_and_search(
    server: Process, client_number: int, answers: Counter[int], stop: asyncio.Event
) -> None:
    """Write and ask by turns; every second client rests long enough for its connection to fall idle."""
    async with httpx.AsyncClient(base_url=f"{server.address}/api/v1", timeout=60) as client:
        while not stop.is_set():
            text = f"tide{client_number}x{answers.total()}"
            body = {"documents": [{"text": text}], "source": "kept"}
            answers[(await client.post("/collections/wiki/documents", json=body)).status_code] += 1
            answer = await client.post("/search", json={"query": text, "limit": 1, "collection": "wiki"})
            answers[answer.status_code] += 1
            assert answer.json()["hits"][0]["chunk"]["text"] == text
            await asyncio.sleep(0.3 if client_number % 2 else 0.1)


@asynccontextmanager
async def running_clients(server: Process) -> AsyncIterator[Counter[int]]:
    """While clients ask; a request that fails in any way fails the test."""
    answers: Counter[int] = Counter()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as clients:
        for client_number in range(CLIENTS):
            clients.create_task(write_and_search(server, client_number, answers, stop))
        try:
            yield answers
        finally:
            stop.set()


async def test_all_are_replaced_without_a_request_that_fails_and_readiness_goes_before_them(
    tmp_path: Path,
) -> None:
    quiet = {**QUIET, "drain_seconds": 2}
    with running_server(tmp_path, "--no-auth", "--workers", str(WORKERS), **quiet) as server:
        with server.client(None) as client:
            client.post("/collections", json={"name": "wiki"})
        before = child_processes(server.process.pid)
        assert len(before) == WORKERS
        async with running_clients(server) as answers:
            server.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(blocking_until, lambda: not before & child_processes(server.process.pid))
            reached = answers.total() + 4 * CLIENTS
            await asyncio.to_thread(blocking_until, lambda: answers.total() >= reached)
        blocking_until(lambda: len(child_processes(server.process.pid)) == WORKERS)
        assert set(answers) == {200, 201}
        with open_reconnecting_client(server) as anew:
            assert read_metric(anew, "conspectus_requests_total") >= answers.total()
            blocking_until(lambda: read_metric(anew, "conspectus_processes") == WORKERS)
            blocking_until(lambda: anew.get("/readyz").status_code == 200)
            server.process.send_signal(signal.SIGTERM)
            blocking_until(lambda: anew.get("/readyz").status_code == 503)
            live = anew.get("/healthz")
            assert (live.status_code, live.headers["connection"]) == (200, "close")
            assert anew.get("/api/v1/me").status_code == 200
        assert server.process.communicate(timeout=60)[1] == ""
        assert server.process.returncode == 0


@pytest.mark.slow
def test_a_server_is_ready_while_one_joins_its_processes_and_one_that_was_killed_is_replaced(
    tmp_path: Path,
) -> None:
    index = tmp_path / "data" / "index"
    with (
        running_server(
            tmp_path, "--no-auth", "--no-jobs", "--workers", str(WORKERS), log_level="error"
        ) as server,
        open_reconnecting_client(server) as client,
    ):
        assert client.post("/api/v1/collections", json={"name": "wiki"}).status_code == 201
        body = {"documents": [{"text": "tide"}]}
        assert client.post("/api/v1/collections/wiki/documents", json=body).status_code == 201
        before = child_processes(server.process.pid)
        index.write_text("in the way", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        read_line_with(server.process, '"readiness_failed"')
        answers = {client.get("/readyz").text for _ in range(60)}
        index.unlink()
        assert not [answer for answer in answers if "the server is" in answer]
        blocking_until(lambda: not before & child_processes(server.process.pid))
        blocking_until(lambda: read_metric(client, "conspectus_processes") == WORKERS)
        before = child_processes(server.process.pid)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        blocking_until(lambda: len(child_processes(server.process.pid) - before) == 1)
        blocking_until(lambda: read_metric(client, "conspectus_processes") == WORKERS)
        assert f'"worker": {victim}' in server.end()
        assert server.process.returncode == 0


@pytest.mark.slow
def test_a_process_that_stands_still_is_replaced(tmp_path: Path) -> None:
    quick = {"log_level": "error", "lease_seconds": 3}
    with running_server(tmp_path, "--no-auth", "--workers", str(WORKERS), **quick) as server:
        before = child_processes(server.process.pid)
        os.kill(min(before), signal.SIGSTOP)
        blocking_until(lambda: len(child_processes(server.process.pid) - before) == 1)
        assert min(before) not in child_processes(server.process.pid)
        server.end()
        assert server.process.returncode == 0


@contextmanager
def starting_server(folder: Path, *, python: str = sys.executable) -> Iterator[subprocess.Popen[str]]:
    """A server that has started its processes, none of which can be asked yet."""
    temporary = folder / "temporary"
    temporary.mkdir()
    variables = {**environment(folder), "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [python, *PROGRAM[1:], "--no-auth", "--workers", str(WORKERS)]
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            blocking_until(lambda: len(child_processes(process.pid)) == WORKERS)
            yield process
        finally:
            late.cancel()
            with suppress(ProcessLookupError):
                process.kill()


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """The next line that has a word in it."""
    assert process.stderr is not None
    line = process.stderr.readline()
    while word not in line:
        assert line, f"ended without {word}"
        line = process.stderr.readline()
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_server_that_is_still_starting_ends_with_all_its_processes(tmp_path: Path, number: int) -> None:
    with starting_server(tmp_path) as process:
        workers = child_processes(process.pid)
        process.send_signal(number)
        log = process.communicate(timeout=PATIENCE)[1]
        assert {json.loads(line)["event"] for line in log.splitlines()} <= {"ready"}
        assert process.returncode == 0
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
        assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.slow
def test_a_process_that_was_killed_while_others_still_start_is_replaced(tmp_path: Path) -> None:
    with starting_server(tmp_path) as process:
        slow, quick = sorted(child_processes(process.pid))
        os.kill(slow, signal.SIGSTOP)
        assert f'"worker": {quick}' in read_until(process, '"ready"')
        os.kill(quick, signal.SIGKILL)
        blocking_until(lambda: quick not in child_processes(process.pid))
        os.kill(slow, signal.SIGCONT)
        read_until(process, "listening on")
        blocking_until(lambda: len(child_processes(process.pid)) == WORKERS)


@pytest.mark.slow
def test_a_wish_for_new_processes_is_heard_at_any_time(tmp_path: Path) -> None:
    with starting_server(tmp_path) as process:
        process.send_signal(signal.SIGHUP)
        for word in ("listening on", "workers_replacing"):
            read_until(process, word)
        process.send_signal(signal.SIGHUP)
        for word in ("workers_replaced", "workers_replacing"):
            read_until(process, word)


def test_one_that_cannot_be_started_is_tried_again_and_workers_end_with_their_server(tmp_path: Path) -> None:
    python, temporary = tmp_path / "python", tmp_path / "temporary"
    python.symlink_to(sys.executable)
    with starting_server(tmp_path, python=str(python)) as process:
        read_until(process, "listening on")
        python.unlink()
        before = child_processes(process.pid)
        os.kill(min(before), signal.SIGKILL)
        assert "No such file" in read_until(process, "worker_spawn_failed")
        python.symlink_to(sys.executable)
        blocking_until(lambda: len(child_processes(process.pid)) == WORKERS)
        workers = child_processes(process.pid)
        read_until(process, f'"worker": {max(workers - before)}')
        assert list(temporary.iterdir())
        process.kill()
        process.wait()
        blocking_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        assert not list(temporary.iterdir())

"""`conspectus serve` as a process of its own: who may come in, and how it ends."""

import asyncio
import io
import json
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conspectus import sync
from conspectus.model.jobs import Job
from conspectus.web.logs import forward_library_logs, logger
from conspectus.web.supervisor import MAX_PROCESSES
from tests.cli.conftest import Shell
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import PATIENCE, blocking_until
from tests.web.conftest import SETTINGS

PROGRAM = [sys.executable, "-c", "from conspectus.cli.entry import main; main()", "serve", "--port", "0"]
KEY = re.compile(r"csp_[0-9a-f]+_[0-9a-f]+")


@dataclass
class Process:
    """A server that runs."""

    process: subprocess.Popen[str]
    address: str
    announcement: str

    def client(self, key: str | None) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=f"{self.address}/api/v1", headers=headers, timeout=60)

    def end(self, number: int = signal.SIGTERM) -> str:
        """Send a signal and give the rest of the log."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[1]


def environment(folder: Path, **settings: object) -> dict[str, str]:
    variables = {"PATH": folder / "data", "EMBEDDER": "none", **settings}
    return {**os.environ, **{f"CONSPECTUS_{name.upper()}": str(value) for name, value in variables.items()}}


def run_refused(folder: Path, *arguments: str) -> tuple[int, str]:
    """What the command says in this process, which has loaded it; a server that starts has one of its own."""
    outcome = Shell(folder)("serve", "--port", "0", *arguments)
    return outcome.code, outcome.err


def read_announcement(process: subprocess.Popen[str]) -> str:
    """What is on its standard output so far."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    try:
        return os.read(process.stdout.fileno(), 65_536).decode()
    except BlockingIOError:
        return ""
    finally:
        os.set_blocking(process.stdout.fileno(), True)


def read_line_with(process: subprocess.Popen[str], words: str) -> str:
    """The next line of its log that holds these words."""
    assert process.stderr is not None
    waiting = threading.Timer(PATIENCE, process.kill)
    waiting.start()
    try:
        return next(line for line in iter(process.stderr.readline, "") if words in line)
    finally:
        waiting.cancel()


@contextmanager
def running_server(
    folder: Path, *arguments: str, program: Sequence[str] = PROGRAM, **settings: object
) -> Iterator[Process]:
    with subprocess.Popen(
        [*program, *arguments],
        env=environment(folder, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            while first.startswith("{"):
                first = process.stderr.readline()
            match = re.match(r"listening on (http://\S+)", first)
            assert match, first + process.stderr.read()
            yield Process(process, match[1].replace("0.0.0.0", "127.0.0.1"), read_announcement(process))
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def test_the_first_start_prints_the_owners_key_once(tmp_path: Path) -> None:
    with running_server(tmp_path) as first, first.client(None) as nobody:
        (key,) = KEY.findall(first.announcement)
        assert nobody.get("/me").status_code == 401
        with first.client(key) as owner:
            assert owner.get("/me").json()["owner"] is True
            assert owner.post("/collections", json={"name": "wiki"}).status_code == 201
        log = first.end()
        assert (first.process.returncode, key in log) == (0, False)
        assert [json.loads(line)["event"] for line in log.splitlines()].count("request") == 3
    with running_server(tmp_path) as second, second.client(key) as owner:
        assert second.announcement == ""
        assert owner.get("/collections/wiki").status_code == 200
        second.end()
        assert second.process.returncode == 0


def test_without_accounts_no_key_is_needed_and_one_that_a_client_cannot_leave_out_does_no_harm(
    tmp_path: Path,
) -> None:
    with (
        running_server(tmp_path, "--no-auth") as server,
        server.client(None) as nobody,
        server.client("sk-anything") as client,
    ):
        assert server.announcement == ""
        for anybody in (nobody, client):
            assert anybody.get("/me").json()["owner"] is True
            assert anybody.get("/me", headers={"Origin": "https://evil.example"}).status_code == 403
        assert client.get("/me", headers={"Host": "evil.example"}).status_code == 403
        client.post("/users", json={"name": "ann"})
        assert client.get("/me").status_code == 401


def test_a_place_that_others_can_reach_needs_a_valid_key(tmp_path: Path) -> None:
    code, output = run_refused(tmp_path, "--host", "0.0.0.0", "--no-auth")
    assert (code, "other machines" in output) == (2, True)
    with running_server(tmp_path, "--host", "0.0.0.0") as server, server.client(None) as nobody:
        assert len(KEY.findall(server.announcement)) == 1
        assert nobody.get("/me").status_code == 401
    with sync.open(tmp_path / "data", settings=SETTINGS) as engine:
        keys = engine.keys.list()
        assert [engine.keys.revoke(key.id).revoked is not None for key in keys] == [True]
    code, output = run_refused(tmp_path, "--host", "0.0.0.0")
    assert (code, "no key is valid" in output) == (2, True)
    code, output = run_refused(tmp_path, "--no-auth")
    assert (code, "has accounts" in output) == (2, True)


@pytest.mark.parametrize("host", ["nowhere.invalid", "203.0.113.1", ""])
def test_a_place_where_it_cannot_listen(tmp_path: Path, host: str) -> None:
    code, output = run_refused(tmp_path, "--host", host)
    assert (code, "Traceback" in output) == (2, False)
    assert not KEY.search(output)


def test_more_processes_than_a_machine_could_run_are_refused(tmp_path: Path) -> None:
    """The address is not this machine's, so that without the limit nothing would start either."""
    code, output = run_refused(tmp_path, "--workers", str(MAX_PROCESSES + 1), "--host", "203.0.113.1")
    assert (code, output) == (
        2,
        f"error: workers: {MAX_PROCESSES + 1} processes are too many; the maximum is {MAX_PROCESSES}\n",
    )
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_costs_no_key(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [*PROGRAM, "--port", str(listener.getsockname()[1])]
        ended = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "cannot listen" in ended.stderr) == (2, True)
    assert not (tmp_path / "data").exists()


def test_what_libraries_say_becomes_a_line_without_content() -> None:
    stream = io.StringIO()
    with forward_library_logs(logger("info", stream)):
        logging.getLogger("uvicorn.error").warning("refused %s", "Zanzibar")
        logging.getLogger("conspectus.ingest").warning("failed with %s", "storage_busy")
        logging.getLogger("uvicorn.error").info("nothing of note")
    logging.getLogger("uvicorn.error").warning("too late")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["logger"]) == ("refused %s", "warning", "uvicorn.error")
    assert second["event"] == "failed with storage_busy"


def ingest(client: httpx.Client, url: str) -> str:
    """The id of a job that runs."""
    answer = client.post("/collections/wiki/ingest/url", json={"url": url})
    assert answer.status_code == 202, answer.text
    job = str(answer.json()["id"])
    blocking_until(lambda: client.get(f"/jobs/{job}").json()["state"] == "running")
    return job


class SlowPages:
    """A web server in a thread of its own, which gives its page when it is let go."""

    def __init__(self) -> None:
        self._loop, self._answer = asyncio.new_event_loop(), asyncio.Event()
        page = Answer(b"Tides turn twice a day.", delay=self._answer)
        self._server = ScriptedServer({"/page": page})
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> "SlowPages":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.__aenter__(), self._loop).result()
        self.page = f"{self._server.base}/page"
        return self

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._answer.set)

    def __exit__(self, *fault: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._server.__aexit__(*fault), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def stored(folder: Path, job: str) -> Job:
    with sync.open(folder / "data", settings=SETTINGS) as engine:
        return engine.jobs.get(job)


def test_what_is_being_answered_is_finished(tmp_path: Path) -> None:
    allowed = {"fetch_allowed_networks": "127.0.0.1"}
    with (
        SlowPages() as pages,
        running_server(tmp_path, "--no-auth", **allowed) as server,
        server.client(None) as client,
        ThreadPoolExecutor(1) as threads,
    ):
        job = ingest(client, pages.page)
        waiting = threads.submit(client.get, f"/jobs/{job}", params={"wait": 30})
        blocking_until(lambda: b"in_flight 2.0" in httpx.get(f"{server.address}/metrics").content)
        threading.Timer(1.0, pages.let_go).start()
        log = server.end()
        answer = waiting.result()
        assert (answer.status_code, answer.json()["state"]) == (200, "succeeded")
        assert server.process.returncode == 0
        assert "Traceback" not in log
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/health/live")


def test_what_cannot_be_finished_is_left_for_the_next_start(tmp_path: Path) -> None:
    allowed = {"fetch_allowed_networks": "127.0.0.1", "job_grace_seconds": 1, "fetch_timeout_seconds": 600}
    with SlowPages() as pages:
        with running_server(tmp_path, "--no-auth", **allowed) as server, server.client(None) as client:
            job = ingest(client, pages.page)
            log = server.end()
            assert server.process.returncode == 0
            assert "Traceback" not in log
        assert stored(tmp_path, job).state in {"queued", "running"}


def test_a_key_and_an_address_as_json_and_work_in_the_background_does_not_end_in_silence(
    tmp_path: Path,
) -> None:
    with (
        running_server(tmp_path, "--json") as server,
        server.client(json.loads(server.announcement)["key"]) as client,
    ):
        opened = json.loads(server.announcement)
        assert (opened["address"], bool(KEY.fullmatch(opened["key"]))) == (server.address, True)
        assert client.post("/collections", json={"name": "wiki"}).status_code == 201
        with closing(sqlite3.connect(tmp_path / "data" / "records.sqlite")) as other, other:
            other.execute(
                "INSERT INTO connections (id, collection, owner, name, connector, "
                "options, cursor, state, error, last_run) "
                "SELECT 'c', id, owner, 'c', 'git', '{', NULL, 'idle', NULL, NULL "
                "FROM collections"
            )
        line = json.loads(read_line_with(server.process, "background_failed"))
        assert client.get("/me").status_code == 200
        server.end()
        assert server.process.returncode == 0
    assert line["error"] == "RecordsDamaged"


def is_listening(server: Process) -> bool:
    try:
        return httpx.get(f"{server.address}/health/live").is_success
    except httpx.TransportError:
        return False


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    allowed = {"fetch_allowed_networks": "127.0.0.1", "job_grace_seconds": 600, "fetch_timeout_seconds": 600}
    with (
        SlowPages() as pages,
        running_server(tmp_path, "--no-auth", **allowed) as server,
        server.client(None) as client,
    ):
        job = ingest(client, pages.page)
        server.process.send_signal(signal.SIGINT)
        blocking_until(lambda: not is_listening(server))
        server.end(signal.SIGINT)
        assert server.process.returncode == -signal.SIGINT
    assert stored(tmp_path, job).state in {"queued", "running"}

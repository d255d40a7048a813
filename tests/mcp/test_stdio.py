"""The program as a client starts it: over standard input and output, and however it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conspectus import bootstrap
from conspectus.model.memory import Scope
from mcp import Client, StdioServerParameters
from tests.mcp.conftest import SETTINGS, answer_text, remember_texts

PROGRAM = ["-c", "from conspectus.cli.entry import main; main()"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def tool_request(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def environment(folder: Path, **others: str) -> dict[str, str]:
    return {"CONSPECTUS_EMBEDDER": "none", "CONSPECTUS_PATH": str(folder / "data"), **others}


def server(folder: Path, *options: str, **others: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=[*PROGRAM, "mcp", *options],
        env=environment(folder, **others),
        cwd=folder,
    )


class Process:
    """The program with its pipes, spoken to line by line."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._early: dict[int, Any] = {}
        self.process = subprocess.Popen(
            [sys.executable, *PROGRAM, "mcp", *options],
            cwd=folder,
            env={**os.environ, **environment(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, *messages: object) -> None:
        """Each as a line."""
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> Any:
        """The answer to the message of that number; answers come in any order, and each line is JSON."""
        assert self.process.stdout is not None
        if number in self._early:
            return self._early.pop(number)
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message
            self._early[message.get("id")] = message
        raise AssertionError("the program ended")

    def ended(self) -> tuple[int, bytes, bytes]:
        """Its exit code and what it still wrote, with the input left open."""
        assert self.process.stdout is not None and self.process.stderr is not None
        code = self.process.wait()
        return code, self.process.stdout.read(), self.process.stderr.read()


@contextmanager
def started(folder: Path, *options: str) -> Iterator[Process]:
    """The program, killed at the end of the block if it still runs."""
    process = Process(folder, *options)
    with process.process:
        try:
            yield process
        finally:
            process.process.kill()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    with started(tmp_path) as process:
        yield process


def data_of(answer: Any) -> Any:
    """The JSON that a tool's result has as its text."""
    return json.loads(answer["result"]["content"][0]["text"])


@pytest.mark.slow
async def test_a_client_remembers_from_one_process_to_the_next_also_after_a_kill(tmp_path: Path) -> None:
    with started(tmp_path, "--user", "ann") as process:
        process.send(
            HELLO, READY, tool_request(1_000, "remember", memories=[{"text": "The ferry leaves at noon."}])
        )
        process.answer(1_000)
        for number in range(2, 12):
            process.send(tool_request(number, "remember", memories=[{"text": f"Turn {number}."}]))
            process.answer(number)
    async with Client(server(tmp_path, "--user", "ann", "--max-tokens", "300")) as second:
        assert "at noon" in await answer_text(second, "recall", query="when does the ferry leave")
        tool = next(tool for tool in (await second.list_tools()).tools if tool.name == "recall")
        assert "user" not in tool.input_schema["properties"]
        assert tool.input_schema["properties"]["max_tokens"]["maximum"] == 300
    async with bootstrap.open(tmp_path / "data", settings=SETTINGS) as engine:
        exported = str((await engine.memory.export(scope=Scope("ann"))).lines)
    assert [f"Turn {number}." in exported for number in range(2, 12)] == [True] * 10


async def test_two_programs_use_the_same_data_at_once_and_a_project_is_the_agent_of_its_repository(
    tmp_path: Path,
) -> None:
    repository = tmp_path / "repo"
    (repository / ".git").mkdir(parents=True)
    (repository / "src").mkdir()
    async with (
        Client(server(tmp_path, "--user", "ann", "--project", str(repository / "src"))) as ann,
        Client(server(tmp_path, "--user", "bob", "--agent", str(repository))) as bob,
    ):
        await asyncio.gather(
            *(
                remember_texts(session, f"{name} {number}")
                for number in range(5)
                for session, name in ((ann, "A"), (bob, "B"))
            )
        )
        for session, prefix, other in ((ann, "A ", "B "), (bob, "B ", "A ")):
            history = await answer_text(session, "history")
            assert history.count(f": {prefix}") == 5 and f": {other}" not in history
        tools = (await ann.list_tools()).tools
        assert all("agent" not in session.input_schema["properties"] for session in tools)
    async with bootstrap.open(tmp_path / "data", settings=SETTINGS) as engine:
        for user in ("ann", "bob"):
            assert await engine.memory.count(scope=Scope(user, str(repository))) == 5


def test_bad_lines_do_no_harm_and_the_end_of_the_input_ends_it(process: Process) -> None:
    process.send(b"not json", b"", b"[" * 200_000, b'{"jsonrpc":"2.0"}', b"\xff\xfe\x00", HELLO, READY)
    assert process.answer(1)["result"]["serverInfo"]["name"] == "conspectus"
    process.send(
        tool_request(2, "operations", name="list_collections", arguments={}),
        tool_request(3, "search", query="x" * 1_000_000),
    )
    assert data_of(process.answer(2)) == {"collections": []}
    assert process.answer(3)["result"]["isError"] is True
    process.send(tool_request(4, "remember", memories=[{"text": "Noon."}]))
    assert data_of(process.answer(4))["stored"] == 1
    assert process.process.stdin is not None
    process.process.stdin.close()
    assert process.ended() == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_it_cleanly_while_the_input_is_open(process: Process, number: signal.Signals) -> None:
    process.send(HELLO)
    process.answer(1)
    process.process.send_signal(number)
    assert process.ended() == (0, b"", b"")


@pytest.mark.slow
def test_a_regular_file_may_be_the_input(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("\n".join(json.dumps(message) for message in (HELLO, READY)), encoding="utf-8")
    with lines.open("rb") as input_file:
        done = subprocess.run(
            [sys.executable, *PROGRAM, "mcp"],
            cwd=tmp_path,
            env={**os.environ, **environment(tmp_path)},
            stdin=input_file,
            capture_output=True,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "conspectus"

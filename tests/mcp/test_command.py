"""`conspectus mcp` as a command: its options, and the server that it asks or is."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from conspectus import client as remote
from conspectus.settings import Settings
from mcp import Client
from tests.cli.conftest import Shell
from tests.mcp.conftest import SETTINGS, answer_data, answer_text, client, refused, remember_texts
from tests.mcp.test_stdio import PROGRAM, environment, server
from tests.web.conftest import Live


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_program_does_not_load_the_protocol_before_it_is_asked_for() -> None:
    loaded = "from conspectus.cli.main import build_app; build_app(); import sys; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--max-tokens", "199"),
        ("--user", " "),
        ("--tokenizer", "guess"),
        ("--collection", "wiki"),
        ("--port", "0"),
        ("--no-auth",),
        ("--http", "--url", "http://localhost:1"),
        ("--http", "--no-auth", "--host", "192.0.2.1"),
        ("--data-dir", "x", "--url", "http://localhost:1"),
        ("--url", "ftp://localhost"),
        ("--surprise",),
    ],
)
def test_what_cannot_be_served_is_refused(shell: Shell, options: tuple[str, ...]) -> None:
    done = shell("mcp", *options)
    assert (done.code, done.out) == (2, ""), done.err
    assert "Traceback" not in done.err


@asynccontextmanager
async def connected(live: Live) -> AsyncIterator[Client]:
    """The tools over an engine that is on a server."""
    async with remote.open(live.address, settings=Settings()) as engine, client(engine) as session:
        yield session


async def test_the_data_may_lie_on_a_server(tmp_path: Path) -> None:
    fact = {"subject": "Ann", "predicate": "lives_in", "object": "Bern"}
    with Live(tmp_path / "data", SETTINGS) as live:
        async with connected(live) as session:
            assert (
                await answer_text(session, "recall", query="x", user="ann") == "No relevant memory was found."
            )
            (memory,) = await remember_texts(session, "The ferry leaves at noon.", user="ann")
            assert "noon" in await answer_text(session, "recall", query="ferry", user="ann")
            assert "noon" in await answer_text(session, "recall", window=True, query="ferry", user="ann")
            await answer_data(session, "update_memory", memory=memory, text="It leaves at one.", user="ann")
            assert "at one" in await answer_text(session, "history", user="ann")
            assert (await answer_data(session, "forget", ids=[memory], confirm=True, user="ann"))[
                "memories"
            ] == 1
            assert (await answer_data(session, "add_facts", facts=[fact]))["new_nodes"] == 2
            assert "Bern" in await answer_text(session, "graph", node="Ann")
            assert "Ann (entity" in await answer_text(session, "graph", query="Ann")
            assert await answer_text(session, "context", query="ferry") == "Nothing relevant was found."
            assert (await refused(session, "read_document", document="x")).startswith("not_found")


async def test_over_pipes_a_server_can_be_asked(tmp_path: Path) -> None:
    with Live(tmp_path / "server", SETTINGS) as live:
        async with Client(server(tmp_path, "--url", live.address)) as session:
            await remember_texts(session, "The ferry leaves at noon.")
            assert "noon" in await answer_text(session, "recall", query="ferry")
    assert not (tmp_path / "data").exists()


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = replace(Settings(), client_timeout_seconds=5)
    async with remote.open("http://127.0.0.1:9", settings=settings) as engine, client(engine) as session:
        why = await refused(session, "search", query="x")
        assert why.startswith("server_unavailable: http://127.0.0.1:9")


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[str]:
    """The address of a program that listens, which ends as it should."""
    with subprocess.Popen(
        [sys.executable, *PROGRAM, "mcp", "--http", "--port", "0", "--no-auth", "--user", "ann"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None and process.stdout is not None
        yield process.stderr.readline().strip().removeprefix("listening on ")
        process.terminate()
        assert process.wait() == 0
        assert process.stdout.read() == "" and "Traceback" not in process.stderr.read()


async def test_it_listens_on_a_port_with_nothing_else_on_it(listening: str) -> None:
    async with httpx2.AsyncClient(timeout=60) as http:
        async with Client(streamable_http_client(listening, http_client=http)) as session:
            await remember_texts(session, "The ferry leaves at noon.")
            assert (await refused(session, "history", user="bob")).startswith("invalid_input")
        api = listening.removesuffix("/mcp")
        assert (await http.get(f"{api}/api/v1/collections")).status_code == 404
        assert (await http.get(f"{api}/health/live")).status_code == 200

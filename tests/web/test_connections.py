"""Connections that do not say what they want: closed in time, few enough, and in nobody's way."""

import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from conspectus import sync
from conspectus.web.connections import HEAD_BYTES, network_of
from tests.waiting import blocking_until
from tests.web.conftest import SETTINGS, Live

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
BODY = (
    b"POST /api/v1/collections HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)


@contextmanager
def open_connection(live: Live, first: bytes = b"") -> Iterator[socket.socket]:
    host, _, port = live.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(first)
        yield connection


def read_to_end(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    answer = b""
    with suppress(ConnectionError):
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def send_slowly(connection: socket.socket) -> None:
    """Send a byte again and again, as long as the other side is there."""
    with suppress(OSError):
        while True:
            connection.sendall(b"x")
            time.sleep(0.1)


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


@pytest.mark.parametrize("first", [b"", HEAD + b"\r\n"], ids=["new", "idle"])
def test_a_connection_that_sends_nothing_is_closed(tmp_path: Path, first: bytes) -> None:
    with (
        Live(tmp_path, replace(SETTINGS, header_seconds=1)) as live,
        open_connection(live, first) as connection,
    ):
        assert read_to_end(connection).startswith(b"HTTP/1.1 200 " if first else b"")


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"], ids=["new", "idle"])
def test_the_time_for_a_head_does_not_begin_anew_with_each_byte(tmp_path: Path, before: bytes) -> None:
    with (
        Live(tmp_path, replace(SETTINGS, header_seconds=1)) as live,
        open_connection(live, before + HEAD + b"X: ") as connection,
    ):
        trickling = threading.Thread(target=send_slowly, args=[connection])
        trickling.start()
        answer = read_to_end(connection)
        trickling.join()
    assert answer.count(b"HTTP/1.1 408 ") == 1
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["code"] == "request_timeout"


def test_a_body_that_trickles_after_its_answer_is_ended(tmp_path: Path) -> None:
    with sync.open(tmp_path, settings=SETTINGS) as engine:
        engine.people.create_user("ann")
    with (
        Live(tmp_path, replace(SETTINGS, header_seconds=1)) as live,
        open_connection(live, BODY.replace(b"100", b"100000")) as connection,
    ):
        trickling = threading.Thread(target=send_slowly, args=[connection])
        trickling.start()
        assert read_to_end(connection).startswith(b"HTTP/1.1 401 ")
        trickling.join()


def test_of_too_many_connections_of_an_address_the_oldest_without_a_key_is_closed(tmp_path: Path) -> None:
    settings = replace(SETTINGS, max_address_connections=5)
    with Live(tmp_path, settings) as live, live.client() as client, ExitStack() as opened:
        assert client.get("/me").status_code == 200
        silent = [opened.enter_context(open_connection(live, HEAD)) for _ in range(12)]
        blocking_until(lambda: not any(is_open(connection) for connection in silent[:7]))
        assert all(is_open(connection) for connection in silent[7:])
        client_address = str(client.get("/me").extensions["network_stream"].get_extra_info("client_addr"))
        assert client.get("/me").status_code == 200
        assert (
            str(client.get("/me").extensions["network_stream"].get_extra_info("client_addr"))
            == client_address
        )


def test_what_is_idle_makes_room_and_what_is_in_use_does_not(tmp_path: Path) -> None:
    settings = replace(SETTINGS, max_connections=2)
    with (
        Live(tmp_path, settings) as live,
        live.client() as one,
        live.client() as two,
        open_connection(live, BODY) as busy,
    ):
        in_flight = "conspectus_requests_in_flight 2.0"
        blocking_until(lambda: in_flight in httpx.get(f"{live.address}/metrics").text)
        for _ in range(3):
            assert [client.get("/me").status_code for client in (one, two)] == [200, 200]
        busy.sendall(b'"name": "x"' + b" " * 87 + b"}")
        assert busy.recv(100).startswith(b"HTTP/1.1 201 ")


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_server_without_descriptors_answers_again_when_connections_end(
    tmp_path: Path, few_descriptors: None
) -> None:
    settings = replace(SETTINGS, header_seconds=1, max_connections=1)
    with Live(tmp_path, settings) as live, ExitStack() as opened:
        with suppress(OSError):
            for _ in range(100):
                opened.enter_context(open_connection(live))
        opened.close()
        with live.client() as client:
            assert client.get("/me").status_code == 200


SIZES = [(HEAD_BYTES - 1_000, 200), (HEAD_BYTES, 431), (70_000, 431), (1_000_000, 431)]


@pytest.mark.parametrize(("size", "status"), SIZES)
@pytest.mark.parametrize("where", ["one header", "many headers", "address"])
def test_a_head_has_a_largest_size(tmp_path: Path, where: str, size: int, status: int) -> None:
    long = {
        "one header": HEAD + b"X: " + b"x" * size,
        "many headers": HEAD + b"\r\n".join(b"X%04d: y" % number for number in range(size // 10)),
        "address": b"GET /healthz?" + b"x" * size + b" HTTP/1.1\r\nHost: localhost",
    }[where]
    with Live(tmp_path, SETTINGS) as live, open_connection(live) as connection:
        connection.sendall(long + b"\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    if status == 431:
        assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["code"] == "headers_too_large"


def test_a_length_that_is_given_twice_is_refused_and_ends_the_connection(tmp_path: Path) -> None:
    smuggled = (
        b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    with Live(tmp_path, SETTINGS) as live, open_connection(live, smuggled) as connection:
        connection.shutdown(socket.SHUT_WR)
        answer = read_to_end(connection)
    assert [line[:12] for line in answer.splitlines() if line.startswith(b"HTTP/")] == [b"HTTP/1.1 400"]
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["code"] == "invalid_input"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("x", ""),
    ],
)
def test_what_counts_as_one_client(address: str, network: str) -> None:
    assert network_of((address, 80)) == network


def test_a_connection_that_is_accepted_while_the_server_ends_is_closed(tmp_path: Path) -> None:
    """It would wait for a request, and hold up the end for as long as a head may take."""
    with Live(tmp_path, SETTINGS) as live:
        host, _, port = live.address.removeprefix("http://").partition(":")
        live._server.server_state.is_ending = True
        connection = socket.create_connection((host, int(port)), timeout=10)
        with connection, suppress(ConnectionResetError):
            assert connection.recv(1) == b""

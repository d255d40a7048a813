"""Only addresses that the policy allows are connected to."""

import socket

import httpcore
import pytest
from tests.network import DeadNetwork, Directory

from conspectus.errors import ForbiddenAddress
from conspectus.sources.web.address_policy import AddressPolicy, resolve_name
from conspectus.sources.web.allowed_connections import Connections


async def connect(
    host: str, *answers: str, allow: tuple[str, ...] = (), alive: tuple[str, ...] = ()
) -> list[str]:
    network = DeadNetwork(alive)
    connections = Connections(
        AddressPolicy.from_entries(allow), resolve=Directory({host: answers}), below=network
    )
    with pytest.raises((httpcore.ConnectError, ForbiddenAddress, socket.gaierror)):
        await connections.connect_tcp(host, 1, timeout=1)
    return network.tried


async def test_each_address_is_tried_up_to_a_few() -> None:
    assert await connect("a.org", "8.8.8.8", "8.8.4.4") == ["8.8.8.8", "8.8.4.4"]
    assert len(await connect("a.org", *(f"8.8.8.{last}" for last in range(200)))) == 4


async def test_one_forbidden_address_forbids_all() -> None:
    assert await connect("a.org", "8.8.8.8", "10.0.0.1") == []
    assert await connect("a.org", *["8.8.8.8"] * 10, "fe80::1%eth0") == []


async def test_nothing_is_tried_for_a_name_without_address_or_a_local_one() -> None:
    assert await connect("a.org") == []
    assert await connect("nas.local", "8.8.8.8") == []
    assert await connect("127.0.0.1") == []
    assert await connect("::ffff:127.0.0.1") == []


async def test_a_name_is_looked_up_once_for_each_connection() -> None:
    directory = Directory({"a.org": [["8.8.8.8"], ["127.0.0.1"], ["8.8.4.4"]]})
    network = DeadNetwork()
    connections = Connections(AddressPolicy(), resolve=directory, below=network)
    for error in (httpcore.ConnectError, ForbiddenAddress, httpcore.ConnectError):
        with pytest.raises(error):
            await connections.connect_tcp("a.org", 80)
    assert network.tried == ["8.8.8.8", "8.8.4.4"]
    assert directory.asked == ["a.org"] * 3


async def test_no_local_socket_is_opened() -> None:
    with pytest.raises(ForbiddenAddress):
        await Connections(AddressPolicy(), resolve=resolve_name).connect_unix_socket("/run/docker.sock")


async def test_local_names_are_not_even_looked_up() -> None:
    directory = Directory({}, "8.8.8.8")
    connections = Connections(AddressPolicy(), resolve=directory, below=DeadNetwork())
    for host in ("metadata.google.internal", "localhost", "127.0.0.1"):
        with pytest.raises(ForbiddenAddress):
            await connections.connect_tcp(host, 80)
    assert directory.asked == []

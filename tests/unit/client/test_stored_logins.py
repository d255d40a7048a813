"""Logins in a file: for one account alone, one for each server, and never half a file."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from conspectus.client.stored_logins import Login, StoredLogins
from conspectus.errors import InvalidInput

LOGIN = Login(
    server="https://context.example.org",
    issuer="https://login.example.org",
    client_id="cli",
    token_endpoint="https://login.example.org/token",
    access_token="a.b.c",
    expires=12.5,
)
OTHER = replace(LOGIN, server="https://other.example.org", access_token="d.e.f")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "logins.json"


def test_logins_are_found_by_their_server(file: Path) -> None:
    logins = StoredLogins(file)
    assert logins.find(LOGIN.server) is None
    for login in (LOGIN, OTHER, replace(LOGIN, access_token="new")):
        logins.put(login)
    assert StoredLogins(file).find(LOGIN.server) == replace(LOGIN, access_token="new")
    logins.remove(LOGIN.server)
    logins.remove(LOGIN.server)
    assert (logins.find(LOGIN.server), logins.find(OTHER.server)) == (None, OTHER)


def test_no_other_account_reads_them(file: Path) -> None:
    mask = os.umask(0)
    try:
        with StoredLogins(file).lock():
            StoredLogins(file).put(LOGIN)
    finally:
        os.umask(mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (file.parent, *file.parent.iterdir())}
    assert modes == {"config": 0o700, "logins.json": 0o600, "logins.json.lock": 0o600}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"logins": 7}',
        b'{"logins": [{}]}',
        json.dumps({"logins": [{**dict.fromkeys(Login.__dataclass_fields__, 7)}]}).encode(),
    ],
)
def test_other_content_is_named_and_left_alone(content: bytes, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    for work in (lambda: StoredLogins(file).find("a"), lambda: StoredLogins(file).put(LOGIN)):
        with pytest.raises(InvalidInput, match="holds no logins"):
            work()
    assert file.read_bytes() == content

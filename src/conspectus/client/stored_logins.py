"""The logins of the command line in a file that no other account can read, one for each server."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from conspectus import private
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput

VERSION: Final = 1
MAX_FILE_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Login:
    """A login at a server, with the tokens of its identity provider. `expires` is in seconds since 1970.

    `resource` is what tokens are asked for (RFC 8707); empty at an issuer that does not know it.
    """

    server: str
    issuer: str
    client_id: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    resource: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expires: float = 0.0


class StoredLogins:
    """The logins in a file. Changes replace the whole file, and processes wait for each other."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, server: str) -> Login | None:
        """Return the login at a server; None without one. Raises InvalidInput for a file of other content."""
        return self._read().get(server)

    def put(self, login: Login) -> None:
        """Store a login, in place of the one at the same server. Raises OSError or InvalidInput."""
        self._write({**self._read(), login.server: login})

    def remove(self, server: str) -> None:
        """Forget the login at a server. Raises OSError or InvalidInput."""
        logins = dict(self._read())
        if logins.pop(server, None) is not None:
            self._write(logins)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from changing the file during the block. Raises OSError."""
        private.make_folder(self._path.parent)
        descriptor = private.open_lock(self._path.with_name(f"{self._path.name}.lock"))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> Mapping[str, Login]:
        try:
            with self._path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return {}
        try:
            return {login.server: login for login in map(_to_login, json.loads(content)["logins"])}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidInput(
                "login_file", f"{self._path} holds no logins; delete it and log in again"
            ) from None

    def _write(self, logins: Mapping[str, Login]) -> None:
        document = {"version": VERSION, "logins": [asdict(login) for login in logins.values()]}
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        private.make_folder(self._path.parent)
        try:
            with private.open_for_writing(new) as file:
                file.write(json.dumps(document, indent=1).encode())
            new.replace(self._path)
        finally:
            with suppress(FileNotFoundError):
                new.unlink()
        private.sync(self._path.parent)


def _to_login(members: Mapping[str, Any]) -> Login:
    """Return a login. Raises TypeError for members of another kind."""
    login = Login(**members)
    for member in fields(Login):
        content = getattr(login, member.name)
        is_text = isinstance(content, str) or (member.name == "revocation_endpoint" and content is None)
        if not (isinstance(content, int | float) if member.name == "expires" else is_text):
            raise TypeError(member.name)
    return login

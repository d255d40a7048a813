"""Backups: consistent copies of SQLite databases, and archives of a data directory."""

import hashlib
import json
import re
import sqlite3
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from conspectus.deferred import dataclass
from conspectus.errors import StorageBusy, StorageError, StorageTooNew, TooLarge, UnreadableFile
from conspectus.model.jobs import FINISHED
from conspectus.ports import Progress
from conspectus.private import written
from conspectus.records.core.database import statements
from conspectus.records.tables.core import VERSION
from conspectus.records.transfer.pages import Sum, hash_in_parts
from conspectus.settings import RECORDS
from conspectus.text.zips import DAMAGED

MANIFEST = "manifest.json"
FORMAT = 1
BLOCK = 1 << 20
MANIFEST_BYTES = 1 << 24
LEVEL = 3
_ENCRYPTED = 1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_NAME = re.compile(r"records\.sqlite|secrets/[\w-]{1,200}|uploads/[\w-]{1,200}/\d{1,9}", re.ASCII)
_OUTSIDE = "is not a backup of Conspectus"


@dataclass(frozen=True, slots=True)
class Member:
    """The attributes of a file in a backup."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableSum:
    """The attributes of a table in a backup."""

    rows: int
    hash: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a backup; `version` is that of the records, `moment` the time of the snapshot."""

    program: str
    version: str
    moment: str
    tables: Mapping[str, TableSum]
    members: Mapping[str, Member]

    @property
    def size(self) -> int:
        """The bytes of all members."""
        return sum(each.bytes for each in self.members.values())


def member_of(path: Path) -> Member:
    """The attributes of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return Member(size, digest.hexdigest())


def write_archive(path: Path, members: Mapping[str, Path], manifest: Manifest) -> None:
    """Write a new archive durably, readable by the current account only."""
    packed = zipfile.ZIP_DEFLATED
    with written(path) as file, zipfile.ZipFile(file, "w", packed, compresslevel=LEVEL) as archive:
        for name, member in members.items():
            archive.write(member, name)
        archive.writestr(MANIFEST, json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1))


@contextmanager
def opened(path: Path, *, max_bytes: int) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open an archive, and check that names, types and sizes match its manifest.

    Raises UnreadableFile, or TooLarge for more than `max_bytes` unpacked.
    """
    with _readable(path), zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            _require_plain(each, path)
        manifest = _manifest(archive, path)
        _require_listed(archive, manifest, path)
        if manifest.size > max_bytes:
            raise TooLarge("backup", size=manifest.size, limit=max_bytes)
        yield archive, manifest


def unpack(archive: zipfile.ZipFile, manifest: Manifest, name: str, target: IO[bytes]) -> None:
    """Unpack a member, up to its size in the manifest. Raises UnreadableFile."""
    expected, digest, size = manifest.members[name], hashlib.sha256(), 0
    with archive.open(name) as member:
        while block := member.read(BLOCK):
            size += len(block)
            if size > expected.bytes:
                break
            digest.update(block)
            target.write(block)
    if (size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise UnreadableFile(str(archive.filename), f"{name} does not match its checksum")


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        listed = archive.getinfo(MANIFEST)
    except KeyError:
        raise UnreadableFile(str(path), _OUTSIDE) from None
    with archive.open(listed) as file:
        written = file.read(MANIFEST_BYTES + 1)
    if len(written) > MANIFEST_BYTES:
        raise UnreadableFile(str(path), "its manifest is too large")
    try:
        return _read_manifest(json.loads(written))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as fault:
        raise UnreadableFile(str(path), f"{_OUTSIDE} that this program can read") from fault


def _read_manifest(value: Any) -> Manifest:
    if value["format"] != FORMAT:
        raise ValueError("another format")
    tables = {
        str(name): TableSum(int(each["rows"]), str(each["hash"])) for name, each in value["tables"].items()
    }
    members = {
        str(name): Member(int(each["bytes"]), str(each["sha256"])) for name, each in value["members"].items()
    }
    if RECORDS not in members or any(each.bytes < 0 for each in members.values()):
        raise ValueError("no records")
    moment = datetime.fromisoformat(value["moment"]).isoformat()
    return Manifest(str(value["program"]), str(value["version"]), moment, tables, members)


def _require_plain(listed: zipfile.ZipInfo, path: Path) -> None:
    """Raise UnreadableFile for a member that is not a plain file, or has an unknown compression."""
    mode = stat.S_IFMT(listed.external_attr >> 16)
    if mode not in (0, stat.S_IFREG) or listed.is_dir() or listed.flag_bits & _ENCRYPTED:
        raise UnreadableFile(str(path), f"{listed.filename!r} is not a plain file")
    if listed.compress_type not in _METHODS:
        raise UnreadableFile(str(path), f"{listed.filename!r} has a compression that no backup has")


def _require_listed(archive: zipfile.ZipFile, manifest: Manifest, path: Path) -> None:
    """Raise UnreadableFile for members that differ from the manifest or do not belong to a store."""
    names = [each.filename for each in archive.infolist()]
    if sorted(names) != sorted([*manifest.members, MANIFEST]):
        raise UnreadableFile(str(path), "its files do not match its manifest")
    for name, expected in manifest.members.items():
        if not _NAME.fullmatch(name):
            raise UnreadableFile(str(path), f"{name!r} does not belong to a store")
        if archive.getinfo(name).file_size != expected.bytes:
            raise UnreadableFile(str(path), f"{name!r} has another size than its manifest says")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGED as fault:
        raise UnreadableFile(str(path), f"is damaged or not a backup: {fault}") from fault
    except FileNotFoundError as fault:
        raise UnreadableFile(str(path), "does not exist") from fault


_TOKEN = re.compile(r"'[^']*'|\w+|[^\w\s]")
_STATISTICS = frozenset(
    {"CREATE TABLE sqlite_stat1(tbl,idx,stat)", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"}
)
"""The tables of SQLite's ANALYZE."""


def is_expected(statement: str) -> bool:
    """Return whether a statement consists of nothing but the tokens of the statements of a store.

    These tokens are not sufficient for a view, a trigger, a virtual table, a call or a generated column, and
    their order does not matter.
    """
    return statement in _STATISTICS or _words().issuperset(_TOKEN.findall(statement))


@cache
def _words() -> frozenset[str]:
    return frozenset(word for each in statements("sqlite") for word in _TOKEN.findall(each))


PAGES = 4_096
_WRITTEN_VERSION = re.compile(r"(?!0000)\d{4}", re.ASCII)
_SCHEMA = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"


def copy_online(
    source: Path,
    target: Path,
    *,
    busy_seconds: float,
    at_moment: Callable[[], None],
    progress: Progress | None = None,
) -> None:
    """Copy a consistent snapshot of a database, while others read and write.

    Writers wait only during `at_moment`, which reads other files of the store at the same time.
    """
    with _errors(source), _opened(source, "rw", busy_seconds) as value, closing(_new(target)) as taken:
        with _opened(source, "rw", busy_seconds) as lock:
            lock.execute("BEGIN IMMEDIATE")
            value.execute("BEGIN")
            value.execute("SELECT count(*) FROM sqlite_master").fetchone()
            at_moment()
            lock.execute("ROLLBACK")

        def report(status: int, remaining: int, total: int) -> None:
            if progress is not None:
                progress("copying pages", total - remaining, total)

        value.backup(taken, pages=PAGES, progress=report)
        value.execute("ROLLBACK")
        taken.execute("PRAGMA journal_mode = DELETE")


def unfinished_jobs(path: Path) -> Sequence[str]:
    """Return the unfinished jobs in a copy: only they need files."""
    with _errors(path), _opened(path, "rw", 0.0) as connection:
        found = connection.execute("SELECT id, state FROM jobs").fetchall()
    return [job for job, state in found if state not in FINISHED]


def checked(path: Path) -> tuple[str, Mapping[str, Sum]]:
    """Return the version of a copy, and the checksum of each table, if it is intact.

    The copy is untrusted: nothing in it is executed. Raises StorageError or StorageTooNew.
    """
    with _errors(path), _opened(path, "ro", 0.0) as connection:
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        _require_sound(connection, path)
        return _version(connection, path), dict(_sums(connection))


def _require_sound(connection: sqlite3.Connection, path: Path) -> None:
    for name, statement in connection.execute(_SCHEMA):
        if not isinstance(statement, bytes) or not is_expected(statement.decode("utf-8", "replace")):
            raise StorageError(f"{path}: {name!r} is not a table or index of a store")
    pages = (row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != b"ok")
    broken = (b"a broken reference in " + row[0] for row in connection.execute("PRAGMA foreign_key_check"))
    for problem in chain(pages, broken):
        raise StorageError(f"{path} is damaged: {problem.decode('utf-8', 'replace')}")


def _version(connection: sqlite3.Connection, path: Path) -> str:
    found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    version = found[0].decode("utf-8", "replace") if found and isinstance(found[0], bytes) else ""
    if not _WRITTEN_VERSION.fullmatch(version):
        raise StorageError(f"{path} holds no store, or an unfinished transfer")
    if version > VERSION:
        raise StorageTooNew(str(path), version)
    return version


def _sums(connection: sqlite3.Connection) -> Iterator[tuple[str, Sum]]:
    names = [row[0].decode("utf-8", "replace") for row in connection.execute(_TABLES)]
    for name in sorted(names):
        quoted = name.replace('"', '""')
        found = Sum()
        for row in connection.execute(f'SELECT * FROM "{quoted}"'):
            found += Sum(1, hash_in_parts(row))
        yield name, found


@contextmanager
def _opened(path: Path, mode: str, seconds: float) -> Iterator[sqlite3.Connection]:
    still = "&immutable=1" if mode == "ro" else ""
    address = f"file:{quote(str(path))}?mode={mode}{still}"
    with closing(sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None)) as connection:
        if mode == "ro":
            connection.text_factory = bytes
        yield connection


def _new(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StorageBusy(f"{path} is in use by another process: {error}") from error
        raise StorageError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error

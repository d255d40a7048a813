"""Connections to a Milvus server: collections, aliases, rows, and the lock that orders writers."""

import asyncio
import fcntl
import hashlib
import importlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import grpc
from pymilvus import CollectionSchema, MilvusClient, MilvusException
from pymilvus.milvus_client.index import IndexParams

from conspectus.errors import IndexReplaced, InvalidInput, StorageBusy, StorageError
from conspectus.model.filter import And, Eq, Filter, In, Or
from conspectus.ports.jobs import Lock

Row: TypeAlias = Mapping[str, Any]
Query: TypeAlias = Mapping[str, object]
_Result = TypeVar("_Result")

MAX_RESULTS = 16_384
"""Maximum number of rows of a Milvus response."""
MAX_TEXT_LENGTH = 65_535
"""Maximum number of bytes of a text field in Milvus."""
MAX_BYTES = 8_000_000
"""Approximate bytes per request; the default message limit of Milvus is 64 MB."""
LITE = ".db"
PARTITIONS = 16
"""Number of partitions of a collection with a partition key. Keys are hashed to them."""
_SCHEMES = ("http", "https", "tcp", "unix")
_DROPPED_CODES, _NOT_LOADED = (100, 1600), 101
_UNREACHABLE_CODES = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)
_TEMPORARY_CODES = (8, 103, 401, 503, 901, 902, 905)
"""Messages of a cluster that is rate limited, or replaces shards or nodes. Such a call can be retried."""
_REFUSED_CODES = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_MAX_REASON_LENGTH = 300
_CLOSED_MESSAGE = "closed channel"
_DROPPED_MESSAGE = "WAL already closed"
"""The message of Milvus Lite when a collection is dropped during a write."""
_DROP_PAUSES_SECONDS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts to drop a collection that is in use."""
_OWN_CONNECTION = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_permit_without_calls": 0,
    "grpc.keepalive_time_ms": 360_000,
}
"""Otherwise a new connection would inherit the reconnect backoff of gRPC, and Milvus Lite would close
connections because of the client's default pings: idle ones, and during a call of three minutes. A gRPC
server accepts at most one ping in five minutes.
"""
_LOGGERS = ("pymilvus", "pymilvus.milvus_client", "pymilvus.bulk_writer", "milvus_lite")


class _Connection:
    """A client of Milvus, and the number of calls that run on it."""

    def __init__(self, client: MilvusClient) -> None:
        self.client = client
        self.calls = 0


class MilvusServer:
    """One connection for all indexes of an engine, made when it is first needed.

    Args:
        uri: `http://HOST:PORT`, `https://…` of Zilliz, or a path that ends in `.db` for Milvus Lite.
        token: `USER:PASSWORD` or an API key; empty for none.
        seconds: how long a call may take; so long a server that is away is waited for.
    """

    longest_list = MAX_RESULTS

    def __init__(self, uri: str, *, token: str = "", seconds: float = 30.0) -> None:
        if not uri.endswith(LITE) and urlsplit(uri).scheme not in _SCHEMES:
            raise InvalidInput("milvus_uri", "must begin with http:// or https://, or end in .db")
        self._uri = uri
        self._token = token
        self._seconds = seconds
        self._connection: _Connection | None = None
        self._lite = False
        self._failures = 0
        self._connecting = threading.Lock()
        self._searching = threading.Lock()
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    @property
    def folder(self) -> Path | None:
        """The path of the files of Milvus Lite; None for a server."""
        return Path(self._uri) if self._uri.endswith(LITE) else None

    @property
    def address(self) -> str:
        """The address without secrets."""
        if self.folder is not None:
            return self._uri
        parts = urlsplit(self._uri)
        return f"{parts.hostname or self._uri}:{parts.port}" if parts.port else parts.hostname or "?"

    async def is_lite(self) -> bool:
        """Return whether the server is Milvus Lite, in this process or served."""
        await asyncio.to_thread(self._is_lite)
        return self._lite

    async def collections(self) -> list[str]:
        """Return the names of all collections."""
        return list(await self._call("list_collections"))

    async def describe(self, name: str) -> Row | None:
        """Return Milvus's description of a collection; None if it does not exist."""
        if not await self._call("has_collection", collection_name=name):
            return None
        try:
            description: Row = await self._call("describe_collection", collection_name=name)
        except IndexReplaced:
            return None
        return description

    async def create(self, name: str, schema: CollectionSchema, indexes: IndexParams) -> None:
        """Create a collection and load it, unless it exists."""
        if not await self._call("has_collection", collection_name=name):
            await _await_fully(self._create_and_load(name, schema, indexes))

    async def resolve_alias(self, alias: str) -> str | None:
        """Return the collection of an alias; None if the alias does not exist."""
        try:
            description = await self._call("describe_alias", alias=alias)
        except IndexReplaced:
            return None
        return str(description["collection_name"])

    async def point(self, alias: str, name: str | None) -> None:
        """Set the collection of an alias atomically; None drops the alias."""
        exists = await self.resolve_alias(alias) is not None
        if name is None:
            if exists:
                await self._call("drop_alias", alias=alias)
            return
        if not exists:
            # Another process may create the alias first; then it can be altered.
            with suppress(StorageError):
                await self._call("create_alias", collection_name=name, alias=alias)
                return
        await self._call("alter_alias", collection_name=name, alias=alias)

    async def drop(self, name: str) -> None:
        """Drop a collection with all its data, if it exists."""
        for pause in _DROP_PAUSES_SECONDS:
            try:
                await self._call("drop_collection", collection_name=name)
                return
            except StorageBusy:
                raise
            except StorageError:
                # Milvus Lite fails if another thread drops it at the same time, or still writes to it.
                if not await self._call("has_collection", collection_name=name):
                    return
                await asyncio.sleep(pause)
        await self._call("drop_collection", collection_name=name)

    async def upsert(self, name: str, rows: Sequence[Row]) -> None:
        """Insert rows, or replace those with the same key."""
        if rows:
            await self._call("upsert", collection_name=name, data=list(rows))

    async def delete(self, name: str, where: str) -> None:
        """Delete the rows that an expression selects."""
        await self._call("delete", collection_name=name, filter=where)

    async def flush(self, name: str) -> None:
        """Have the server persist and index what it holds in memory."""
        await self._call("flush", collection_name=name)

    async def query(self, name: str, where: str, fields: Sequence[str]) -> list[Row]:
        """Return the rows that an expression selects, at most `MAX_RESULTS`."""
        rows = await self._call(
            "query",
            collection_name=name,
            filter=where,
            output_fields=list(fields),
            limit=self.longest_list,
            consistency_level="Strong",
        )
        return list(rows)

    async def query_by_halves(
        self, name: str, where: str, fields: Sequence[str], *, along: str, span: tuple[int, int]
    ) -> list[Row]:
        """Return all rows that an expression selects, by halving the range of a column while it is full."""
        first, end = span
        rows = await self.query(name, f"({where}) and {along} >= {first} and {along} < {end}", fields)
        if len(rows) < self.longest_list or end - first < 2:
            return rows
        middle = (first + end) // 2
        below = await self.query_by_halves(name, where, fields, along=along, span=(first, middle))
        return below + await self.query_by_halves(name, where, fields, along=along, span=(middle, end))

    async def query_all(self, name: str, where: str, fields: Sequence[str]) -> list[Row]:
        """Return all rows that an expression selects, in any order."""
        return await _await_fully(asyncio.to_thread(self._iterate, name, where, list(fields)))

    async def search(self, name: str, where: str, fields: Sequence[str], query: Query) -> list[Row]:
        """Return the nearest rows that an expression selects, each with its `distance`."""
        [hits] = await self.searches(name, where, fields, query)
        return hits

    async def searches(self, name: str, where: str, fields: Sequence[str], query: Query) -> list[list[Row]]:
        """Search once for each of several vectors, in one request."""
        responses = await self._call(
            "search",
            collection_name=name,
            filter=where,
            output_fields=list(fields),
            consistency_level="Strong",
            **query,
        )
        return [[{**hit["entity"], "distance": hit["distance"]} for hit in hits] for hits in responses]

    async def close(self) -> None:
        """Close the connection, and the file of Milvus Lite. A later call connects again."""
        await asyncio.to_thread(self._disconnect)

    async def _create_and_load(self, name: str, schema: CollectionSchema, indexes: IndexParams) -> None:
        target: dict[str, Any] = {"collection_name": name}
        has_key = any(field.is_partition_key for field in schema.fields)
        options = {"num_partitions": PARTITIONS if has_key else None, "consistency_level": "Strong"}
        await self._call("create_collection", **target, schema=schema, **options)
        # The client would wait half a second for the index of a collection that has no rows yet.
        await self._call("create_index", **target, index_params=indexes, sync=False)
        await self._call("load_collection", **target)

    async def _call(self, name: str, **arguments: object) -> Any:
        return await _await_fully(asyncio.to_thread(self._run, name, arguments))

    def _run(self, name: str, arguments: dict[str, object], *, again: bool = True, load: bool = True) -> Any:
        # In Milvus Lite, two searches that meet a collection that is not opened yet break its opening.
        one_at_a_time = self._lite and name == "search"
        failures = self._failures
        with (
            self._searching if one_at_a_time else nullcontext(),
            self._use_connection(failures) as connection,
        ):
            try:
                return getattr(connection.client, name)(timeout=self._seconds, **arguments)
            except (MilvusException, grpc.RpcError, ValueError) as fault:
                if isinstance(fault, ValueError) and _CLOSED_MESSAGE not in str(fault):
                    raise
                is_unloaded = load and _code(fault) == _NOT_LOADED
                if not is_unloaded:
                    self._raise_unless_repeatable(fault, connection, again=again)
        if is_unloaded:
            target: dict[str, object] = {"collection_name": arguments["collection_name"]}
            self._run("load_collection", target, again=again, load=False)
        return self._run(name, arguments, again=again and is_unloaded, load=load and not is_unloaded)

    def _raise_unless_repeatable(self, fault: Exception, connection: "_Connection", *, again: bool) -> None:
        """Raise our error for a fault, unless the call can be repeated on another connection."""
        error = self._to_our_error(fault)
        if _is_unreachable(fault):
            self._disconnect(connection)
        if not again or not self._may_reconnect(fault):
            raise error from fault

    def _iterate(self, name: str, where: str, fields: list[str]) -> list[Row]:
        options: dict[str, object] = {"filter": where, "output_fields": fields, "consistency_level": "Strong"}
        rows: list[Row] = []
        with self._use_connection(self._failures):
            pages = self._run("query_iterator", {"collection_name": name, **options})
            try:
                while page := pages.next():
                    rows += page
            except (MilvusException, grpc.RpcError) as fault:
                raise self._to_our_error(fault) from fault
            pages.close()
        return rows

    def _may_reconnect(self, fault: Exception) -> bool:
        """Return whether a new connection may help: this one was closed, or the server of a file exited."""
        was_closed = isinstance(fault, ValueError) or _CLOSED_MESSAGE in _reason(fault)
        return was_closed or (self.folder is not None and _is_unreachable(fault))

    def _is_lite(self) -> bool:
        with self._use_connection(self._failures):
            return self._lite

    @contextmanager
    def _use_connection(self, failures: int) -> Iterator["_Connection"]:
        """Return the connection for one call. It is not closed before all calls on it have ended.

        If it could not be opened while this call waited, so that `failures` has grown, this call fails too.
        """
        with self._connecting:
            if self._connection is None:
                if self._failures != failures:
                    raise self._to_unreachable_error()
                self._failures += 1
                self._connection = _Connection(self._open_client())
                self._failures -= 1
            connection = self._connection
            connection.calls += 1
        try:
            yield connection
        finally:
            with self._connecting:
                connection.calls -= 1
                self._close_if_unused(connection)

    def _open_client(self) -> MilvusClient:
        try:
            client = MilvusClient(
                uri=self._uri,
                token=self._token,
                timeout=self._seconds,
                dedicated=True,
                grpc_options=_OWN_CONNECTION,
            )
        except (MilvusException, grpc.RpcError, OSError) as fault:
            if self.folder is not None:
                raise _to_open_error(self.folder) from fault
            raise self._to_our_error(fault) from fault
        try:
            self._lite = "lite" in str(client.get_server_version(timeout=self._seconds)).lower()
        except (MilvusException, grpc.RpcError) as fault:
            client.close()
            raise self._to_our_error(fault) from fault
        return client

    def _disconnect(self, connection: "_Connection | None" = None) -> None:
        """Give up the connection (or only this one, if it is still in use); a broken one may never recover.

        The last call on it closes it: a call on a closed one would fail with errors of the client.
        """
        with self._connecting:
            if self._connection is None or connection not in (None, self._connection):
                return
            connection, self._connection = self._connection, None
            self._close_if_unused(connection)

    def _close_if_unused(self, connection: "_Connection") -> None:
        if connection.calls or connection is self._connection:
            return
        connection.client.close()
        if self.folder is not None and self._connection is None:
            manager = importlib.import_module("milvus_lite.server_manager")
            manager.server_manager_instance.release_server(self._uri)

    def _to_unreachable_error(self) -> StorageBusy:
        return StorageBusy(
            f"Milvus at {self.address} does not answer within {self._seconds:g} s; nothing is lost:"
            " start it, or check CONSPECTUS_MILVUS_URI, and try again"
        )

    def _to_our_error(self, fault: Exception) -> StorageError:
        code, reason = _code(fault), _reason(fault)
        if code in _DROPPED_CODES or _DROPPED_MESSAGE in reason:
            return IndexReplaced(reason)
        if code in _REFUSED_CODES:
            return StorageBusy(
                f"Milvus at {self.address} refuses the token; nothing is lost: check CONSPECTUS_MILVUS_TOKEN"
            )
        if _is_unreachable(fault):
            return self._to_unreachable_error()
        if isinstance(fault, MilvusException) and (fault.retriable or code in _TEMPORARY_CODES):
            return StorageBusy(
                f"Milvus at {self.address} cannot answer yet ({reason}); nothing is lost: try again"
            )
        return StorageError(f"Milvus at {self.address}: {reason}")


async def _await_fully(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Await a call to its end even when cancelled, so that no lock is released during a write."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait([running])


def _to_open_error(path: Path) -> StorageError:
    if _is_locked(path):
        return StorageBusy(
            f"{path} is open in another process, and Milvus Lite is for one; run `milvus-lite server` over it"
            " and set CONSPECTUS_MILVUS_URI to the server's address"
        )
    return StorageError(f"{path} cannot be opened as a Milvus Lite file")


def _is_locked(path: Path) -> bool:
    try:
        with (path / "LOCK").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _code(fault: Exception) -> object:
    # The reason of a failed connection is only in the cause.
    rpc = fault if isinstance(fault, grpc.Call) else fault.__cause__
    if isinstance(rpc, grpc.Call):
        return rpc.code()
    return fault.code if isinstance(fault, MilvusException) else None


def _is_unreachable(fault: Exception) -> bool:
    """Return whether the server did not respond at all, or another thread closed the channel."""
    if isinstance(fault, ValueError) or _code(fault) in _UNREACHABLE_CODES:
        return True
    reason = _reason(fault)
    return "connecting to server" in reason or _CLOSED_MESSAGE in reason


def _reason(fault: Exception) -> str:
    text = fault.message if isinstance(fault, MilvusException) else str(fault)
    return " ".join(str(text).split())[:_MAX_REASON_LENGTH]


Work: TypeAlias = Literal["write", "build"]
"""The kinds of work of which one process at a time does one."""
Turn: TypeAlias = Callable[[Work], AbstractAsyncContextManager[Lock]]
"""Returns whether this process holds the lock of a kind of work, until the block ends or the lock is lost."""

_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.02, 0.25


@asynccontextmanager
async def my_turn(turn: Turn, work: Work) -> AsyncIterator[Lock]:
    """Wait for the lock, and hold it during the block."""
    pause = _FIRST_WAIT_SECONDS
    while True:
        async with turn(work) as hold:
            if hold:
                yield hold
                return
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_WAIT_SECONDS)


_MAX_NAMED_SOURCES = 2 * PARTITIONS


def tenant(source: object) -> str:
    """Return the tenant of a row: a hash of its source, in characters that need no escaping."""
    return hashlib.blake2b(str(source).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def compile_tenants(where: Filter) -> str | None:
    """Return an expression for the tenants of all rows that match the filter; None if there are too many.

    With more sources, every partition would be searched anyway.
    """
    sources = _sources(where)
    if sources is None or not 0 < len(sources) <= _MAX_NAMED_SOURCES:
        return None
    listed = ",".join(sorted(f'"{tenant(source)}"' for source in sources))
    return f"tenant in [{listed}]"


def _sources(where: Filter) -> frozenset[str] | None:
    """Return the sources that a filter restricts rows to; None if it does not restrict them."""
    match where:
        case Eq("source", str(value)):
            return frozenset({value})
        case In("source", values):
            texts = frozenset(value for value in values if isinstance(value, str))
            return texts if len(texts) == len(set(values)) else None
        case And(inner):
            bounds = [sources for sources in map(_sources, inner) if sources is not None]
            return frozenset.intersection(*bounds) if bounds else None
        case Or(inner):
            alternatives = [sources for sources in map(_sources, inner) if sources is not None]
            return frozenset[str]().union(*alternatives) if len(alternatives) == len(inner) else None
    return None

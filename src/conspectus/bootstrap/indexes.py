"""Indexes of collections: opening, building in a child process, and deleting."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from conspectus.bootstrap.store_address import StoreAddress, index_name, space_name
from conspectus.engine.components import IndexRegistry
from conspectus.errors import IndexDamaged, InvalidInput, MissingExtra, StorageBusy
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Reader, TextAnalysis
from conspectus.ports.jobs import Turns
from conspectus.private import can_write
from conspectus.settings import Settings
from conspectus.text.analyzer import analyzer_for

if TYPE_CHECKING:
    from conspectus.index.milvus.captions import MilvusCaptions
    from conspectus.index.milvus.connection import MilvusServer
    from conspectus.index.milvus.search import MilvusLocation
    from conspectus.index.segments.postings import MakePostings, PostingProcess
    from conspectus.records.core.transactions import Transactions

INDEXES = "index"
IndexKind: TypeAlias = Literal["segments", "pgvector", "milvus"]
PYTHON = (sys.executable, "-P", "-c")
"""Runs a program without the modules of the current folder, which may be named like those of Python."""
BUILDING_CHILD = (
    "import asyncio, sys; from conspectus.index.segments.build_process import answer_for_collection; "
    "from conspectus.records.store import open_records; from conspectus.text.analyzer import analyzer_for; "
    "analyzer_of = lambda language: analyzer_for(language).terms; "
    "asyncio.run(answer_for_collection(sys.argv[1], open_records, analyzer_of))"
)
"""Imports only what a build needs. With all of `bootstrap`, it would take nearly twice as long to start."""
ANALYZING_CHILD = (
    "from conspectus.index.segments.postings import make_postings; "
    "from conspectus.text.analyzer import analyzer_for; "
    "make_postings(lambda language: analyzer_for(language).terms)"
)

FAULT_FINDING_CHILD = (
    "from conspectus.index.text_faults import answer_faults; "
    "from conspectus.text.analyzer import analyzer_for; "
    "answer_faults(lambda language: analyzer_for(language).terms)"
)


def text_analysis() -> TextAnalysis:
    """Return the analyzers of languages, and what finds the texts that they cannot handle."""

    async def find_faults(language: str | None, texts: Sequence[str]) -> Sequence[str | None]:
        from conspectus.index.text_faults import FaultFinder

        return await FaultFinder([*PYTHON, FAULT_FINDING_CHILD])(language, texts)

    return TextAnalysis(lambda language: analyzer_for(language).terms, find_faults)


class Indexes(IndexRegistry, Protocol):
    """The indexes of a store."""

    async def open(self, collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        """Return the index of a collection for an embedding model."""

    async def close(self) -> None:
        """Close shared resources."""


def choose_index(address: StoreAddress, settings: Settings) -> IndexKind:
    """Return the chosen type of index. Raises InvalidInput for one that is unknown or unavailable."""
    match settings.index:
        case "auto":
            return "pgvector" if address.is_shared else "segments"
        case "pgvector" if not address.is_shared:
            raise InvalidInput("index", "pgvector needs a path that begins with postgresql://")
        case "segments" | "pgvector" | "milvus" as known:
            return known
        case other:
            raise InvalidInput("index", f"{other!r} is not auto, segments, pgvector or milvus")


def indexes_of(
    address: StoreAddress, settings: Settings, transactions: "Transactions", turns: Turns
) -> Indexes:
    """Return the indexes that the settings name, with the transactions and locks of the store."""
    match choose_index(address, settings):
        case "segments":
            return EmbeddedIndexes(address, settings, transactions)
        case "milvus":
            return MilvusIndexes(address.folder, settings, turns)
        case "pgvector":
            from conspectus.bootstrap.pgvector import PgvectorIndexes

            indexes = PgvectorIndexes(transactions, settings)
            transactions.before_commit(indexes.apply_before_commit)
            return indexes


class EmbeddedIndexes:
    """Indexes in the store's folder."""

    def __init__(self, address: StoreAddress, settings: Settings, transactions: "Transactions") -> None:
        self._address = address
        self._settings = settings
        self._read = transactions.read
        self._analyzing: PostingProcess | None = None

    async def open(self, collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        """Return the index of a collection for an embedding model."""
        from conspectus.index.segments.postings import PostingProcess

        if self._analyzing is None:
            # On one core, another process would only take longer.
            command = [*PYTHON, ANALYZING_CHILD] if (os.cpu_count() or 1) > 1 else ()
            self._analyzing = PostingProcess(command)
        postings = partial(self._analyzing.postings, collection.language)
        return await open_segments(self._address, collection, space, reader, self._settings, postings)

    async def prepare(self) -> None:
        """Do nothing: indexes share no files."""

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index."""
        from conspectus.index.segments.manifest import remove

        await asyncio.to_thread(remove, index_folder(self._address.folder, collection, space))

    async def stray(self) -> Sequence[str]:
        """None: unused files do no harm."""
        return ()

    async def sweep(self) -> None:
        """Delete the folders of deleted collections. Raises StorageBusy."""
        from conspectus.index.segments.manifest import list_folder
        from conspectus.records.core.collections import all_collections

        # Folders are listed first: a collection created meanwhile gets its folder after its row.
        folders = await asyncio.to_thread(list_folder, self._address.folder / INDEXES)
        collections = await self._read(all_collections)
        used_names = {
            index_folder(self._address.folder, collection, None).parent.name for collection in collections
        }
        used_names |= {collection.id for collection in collections}
        for folder in folders:
            if folder.name not in used_names:
                await asyncio.to_thread(_remove_indexes, folder, self._settings.lock_timeout_seconds)

    async def stop_builds(self) -> None:
        """Do nothing: builds do not keep what a purge erases."""

    async def close(self) -> None:
        """Stop the process that analyzes texts."""
        if self._analyzing is not None:
            await asyncio.to_thread(self._analyzing.close)


async def open_segments(
    address: StoreAddress,
    collection: Collection,
    space: EmbeddingSpace | None,
    reader: Reader,
    settings: Settings,
    postings: "MakePostings",
) -> Index:
    """Open the embedded index. If its files are damaged, it is rebuilt from the records."""
    from conspectus.index.segments.build import Options
    from conspectus.index.segments.build_process import SubprocessBuilder
    from conspectus.index.segments.manifest import forget
    from conspectus.index.segments.store import SegmentsIndex

    directory = index_folder(address.folder, collection, space)
    await asyncio.to_thread(_adopt_index, address.folder / INDEXES / collection.id, directory.parent)
    about = (collection.id, collection.created.isoformat(), collection.language, space and asdict(space))
    command = [*PYTHON, BUILDING_CHILD, json.dumps(about)]
    analyse = analyzer_for(collection.language).terms
    tail = settings.tail_chunks if can_write(address.folder) else sys.maxsize

    async def attempt() -> Index:
        return await SegmentsIndex.open(
            directory,
            reader,
            analyse,
            dimensions=space.dimensions if space else 0,
            builder=SubprocessBuilder(command, first=json.dumps(address.records), postings=postings),
            options=Options(tail_chunks=tail),
        )

    try:
        return await attempt()
    except IndexDamaged:
        await asyncio.to_thread(forget, directory)
        return await attempt()


def index_folder(folder: Path, collection: Collection, space: EmbeddingSpace | None) -> Path:
    """Return the folder of an index. It differs from that of a deleted collection of the same name."""
    created = f"{collection.created:%Y%m%dT%H%M%S%f}"
    name = "".join(character if character.isalnum() else "-" for character in space_name(space))
    return folder / INDEXES / f"{collection.id}-{created}" / name


def _remove_indexes(folder: Path, wait_seconds: float) -> None:
    """Delete the indexes of a deleted collection. Raises StorageBusy."""
    from conspectus.index.segments.manifest import list_folder, remove

    for directory in list_folder(folder):
        if not remove(directory, wait_seconds=wait_seconds):
            raise StorageBusy(
                f"{directory}: a process still builds this index of a deleted collection; try again"
            )
    shutil.rmtree(folder, ignore_errors=True)


def _adopt_index(old: Path, new: Path) -> None:
    """Move an index of an earlier version, in which collections could not be deleted, to its folder."""
    if old.is_dir() and not new.exists() and can_write(old.parent):
        old.rename(new)


LITE = "milvus.db"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class MilvusIndexes:
    """Indexes in Milvus. Writes of several processes to one index are serialized."""

    def __init__(self, folder: Path, settings: Settings, turns: Turns) -> None:
        if not _PREFIX.fullmatch(settings.milvus_prefix):
            raise InvalidInput("milvus_prefix", "must be a letter or _, then at most 63 letters, digits or _")
        self._folder = folder
        self._settings = settings
        self._turns = turns
        self._server: MilvusServer | None = None
        self._opening = asyncio.Lock()

    async def open(self, collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        """Return the index of a collection for an embedding model. Raises StorageBusy or MissingExtra."""
        location = await self._location(collection, space)
        from conspectus.index.milvus.store import MilvusIndex

        return await MilvusIndex.open(location, reader, analyzer_for(collection.language).terms)

    async def prepare(self) -> None:
        """Do nothing: indexes share no objects of the server."""

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index. Raises StorageBusy."""
        location = await self._location(collection, space)
        from conspectus.index.milvus.writes import forget

        await forget(location)

    async def stray(self) -> Sequence[str]:
        """None: another store may use the same prefix."""
        return ()

    async def sweep(self) -> None:
        """Do nothing."""

    async def stop_builds(self) -> None:
        """Do nothing: builds do not keep what a purge erases."""

    async def close(self) -> None:
        """Close the connection."""
        if self._server is not None:
            await self._server.close()

    async def _location(self, collection: Collection, space: EmbeddingSpace | None) -> "MilvusLocation":
        async with self._opening:
            if self._server is None:
                self._server = await asyncio.to_thread(_connection, self._folder, self._settings)
        from conspectus.index.milvus.search import MilvusLocation

        name = index_name(self._settings.milvus_prefix, collection, space_name(space))
        dimensions = space.dimensions if space else 0
        return MilvusLocation(self._server, name, lambda work: self._turns(f"{name}.{work}"), dimensions)


def milvus_captions(collection: str, dimensions: int, settings: Settings) -> "MilvusCaptions":
    """Return a collection of captions in the layout of a video context. Raises MissingExtra."""
    server = _connection(Path(), settings)
    from conspectus.index.milvus.captions import MilvusCaptions

    return MilvusCaptions(server, collection, dimensions)


def _connection(folder: Path, settings: Settings) -> "MilvusServer":
    try:
        from conspectus.index.milvus.connection import MilvusServer
    except ImportError as fault:
        raise MissingExtra("milvus", fault.name or "pymilvus") from fault
    uri = settings.milvus_uri or str(folder / LITE)
    return MilvusServer(uri, token=settings.milvus_token, seconds=float(settings.milvus_timeout_seconds))

"""Moving a store to another place: its rows, and the files of jobs that are not done."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conspectus.bootstrap.places import Place, place_of
from conspectus.errors import Conflict, InvalidInput, NotFound, StorageError
from conspectus.ports import Progress
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.records.moving.move import Moved
    from conspectus.records.transactions import Database

FILES = ("secrets", "uploads")
"""What running jobs have beside the records, in folders of a store."""


@dataclass(frozen=True, slots=True)
class MoveReceipt:
    """What was moved, from where to where."""

    source: str
    target: str
    moved: "Moved"


def move(
    source: str | Path, target: str | Path, *, settings: Settings, progress: Progress | None = None
) -> MoveReceipt:
    """Move all rows of a store into an empty place; the source is only read, and goes on all the while.

    Run again with the same places it goes on where it was killed. Indexes are not moved. Raises NotFound,
    InvalidInput, Conflict for a target that is not empty, StorageTooNew, StorageBusy, or StorageError.
    """
    from conspectus.records.moving.move import Move
    from conspectus.records.moving.target import Target

    here, there = place_of(source, settings), place_of(target, settings)
    if here.folder.resolve() == there.folder.resolve():
        raise InvalidInput("to", "is the store that is to be moved")
    if not here.is_shared and not Path(here.records).is_file():
        raise NotFound("store at", str(here.folder))
    if not there.is_shared:
        _prepare_folder(there)
    with _database(here, settings) as given, _database(there, settings) as taken:
        origin = f"{given.name} [{here.folder.name}]"
        carried = partial(_carry_files, here, there)
        moved = Move(given, Target(taken), progress).run(origin=origin, at_last=carried)
        return MoveReceipt(given.name, taken.name, moved)


@contextmanager
def _database(place: Place, settings: Settings) -> Iterator["Database"]:
    from conspectus.records.databases import DatabaseAccess, database_at

    opened = database_at(place.records, DatabaseAccess(settings.busy_seconds, settings.database_connections))
    try:
        yield opened
    finally:
        opened.reading.dispose()


def _prepare_folder(there: Place) -> None:
    """Make the folder. Raises Conflict where something lies in it that is of no move."""
    records = Path(there.records)
    try:
        there.folder.mkdir(parents=True, exist_ok=True)
        found = {each.name for each in there.folder.iterdir()}
    except OSError as fault:
        raise StorageError(
            f"{there.folder} cannot be made a folder for the store: {fault.strerror}"
        ) from fault
    ours = {records.name, f"{records.name}-wal", f"{records.name}-shm", *FILES}
    if found and (records.name not in found or not found <= ours):
        shown = sorted(found - ours) or sorted(found)
        raise Conflict("target", str(there.folder), f"holds {shown[0]}; move to a folder that is empty")


def _carry_files(here: Place, there: Place) -> None:
    """Copy the files of running jobs; their jobs cannot end meanwhile."""
    if here.is_shared or there.is_shared:
        return
    for name in FILES:
        folder = there.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        if (here.folder / name).is_dir():
            shutil.copytree(here.folder / name, folder)

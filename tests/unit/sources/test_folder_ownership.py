"""Folders with pickled objects are read only where no other account can have written them."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from conspectus.errors import MissingExtra, UnreadableFile
from conspectus.ports.imports import ForeignPlace, LeftOut
from conspectus.sources.folder_ownership import require_own_folder
from conspectus.sources.foreign_stores.readers import foreign_reader

STRANGER = 12_345
MARKS = {"chroma": "chroma.sqlite3", "qdrant": "meta.json", "mem0": "meta.json"}
"""The file by which the folder of each product is known."""


def make_store(folder: Path) -> Path:
    (folder / "collection/pages").mkdir(parents=True)
    for name in (*MARKS.values(), "collection/pages/storage.sqlite"):
        (folder / name).touch()
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return folder


def own_by_stranger(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root gives files to others")
        os.chown(folder / name, STRANGER, STRANGER)

    return change


def open_to_others(name: str, bits: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        path.chmod(path.stat().st_mode | bits)

    return change


def link_to_other_folder(folder: Path) -> None:
    (folder / "collection/other").symlink_to(folder.parent)


PLANTED = {
    "folder-of-another": own_by_stranger("."),
    "file-of-another": own_by_stranger("collection/pages/storage.sqlite"),
    "folder-above-of-another": own_by_stranger(".."),
    "folder-of-all": open_to_others(".", stat.S_IWOTH),
    "folder-of-all-though-sticky": open_to_others(".", stat.S_IWOTH | stat.S_ISVTX),
    "file-of-all": open_to_others("collection/pages/storage.sqlite", stat.S_IWOTH),
    "folder-of-a-group": open_to_others("collection", stat.S_IWGRP),
    "folder-above-of-all": open_to_others("..", stat.S_IWOTH),
    "link": link_to_other_folder,
}


@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_store_that_others_may_have_written_is_not_opened(tmp_path: Path, kind: str, planted: str) -> None:
    folder = make_store(tmp_path / "above" / "store")
    PLANTED[planted](folder)
    with pytest.raises(UnreadableFile, match=r"cp -r .* && chmod -R go-w") as refused:
        list(foreign_reader(kind, ForeignPlace(str(folder)))(LeftOut()))
    assert "pickled" in str(refused.value)


@pytest.mark.parametrize("kind", MARKS)
def test_a_store_of_this_account_is_given_to_its_library(tmp_path: Path, kind: str) -> None:
    """The libraries are in another environment, so opening it ends with the line that installs them."""
    folder = make_store(tmp_path / "store")
    with pytest.raises(MissingExtra):
        list(foreign_reader(kind, ForeignPlace(str(folder)))(LeftOut()))


def test_a_folder_below_one_for_everybody_is_own_where_it_is_sticky(tmp_path: Path) -> None:
    above = tmp_path / "tmp"
    folder = make_store(above / "store")
    above.chmod(0o1777)
    require_own_folder(str(folder))
    above.chmod(0o777)
    with pytest.raises(UnreadableFile, match="can be written by others"):
        require_own_folder(str(folder))

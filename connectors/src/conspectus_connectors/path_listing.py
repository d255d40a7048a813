"""Listings of remotes whose files are known by their paths: what changed since a cursor, in batches."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conspectus.connectors import ConnectorEntry, Listing

CURSOR_VERSION: Final = 1
TOP_SPACE: Final = "."
"""The space of files outside any folder."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a remote: its path, and a text that changes with its content. Its title may be the path.

    `parent` is the path of the file that it belongs to.
    """

    path: str
    fingerprint: str
    viewers: tuple[str, ...] | None = None
    title: str = ""
    parent: str | None = None


def first_folder_of(path: str) -> str:
    """Return the first folder of a path."""
    return path.partition("/")[0] if "/" in path else TOP_SPACE


class ListingProgress:
    """The files of a remote as they are listed, compared with a cursor, in batches of `size`.

    Without a cursor of this module, everything is listed. `space_of` returns the space of a path.
    """

    def __init__(
        self, cursor: str | None, *, size: int, space_of: Callable[[str], str] = first_folder_of
    ) -> None:
        former = read_fingerprints(cursor)
        self.former: Mapping[str, str] = former or {}
        self._is_from_start = former is None
        self._stored = dict(self.former)
        self._kept: set[str] = set()
        self._listed: dict[str, str] = {}
        self._changed: list[RemoteFile] = []
        self._size = size
        self._space_of = space_of

    def keep(self, paths: Iterable[str]) -> None:
        """Take files of the former listing as they were."""
        self._kept.update(paths)

    def add(self, files: Iterable[RemoteFile]) -> Iterator[Listing]:
        """Take files, and yield full batches of those that changed."""
        for file in files:
            self._listed[file.path] = file.fingerprint
            if self._stored.get(file.path) != file.fingerprint:
                self._changed.append(file)
        while len(self._changed) > self._size:
            batch, self._changed = self._changed[: self._size], self._changed[self._size :]
            self._stored |= {file.path: file.fingerprint for file in batch}
            yield Listing(self._entries(batch), _write_cursor(self._stored))

    def finish(self, not_pages: Sequence[str] = ()) -> Listing:
        """Return the last batch, with what is gone. Its cursor has the files that were added at the end."""
        kept = {
            path: digest for path, digest in self.former.items() if path in self._kept - self._listed.keys()
        }
        files = kept | self._listed
        spaces = {self._space_of(path) for path in files}
        return Listing(
            self._entries(self._changed),
            _write_cursor(files),
            gone=tuple(sorted(self._stored.keys() - files.keys())),
            spaces_gone=tuple(sorted({self._space_of(path) for path in self._stored} - spaces)),
            complete=self._is_from_start,
            not_pages=tuple(not_pages),
        )

    def _entries(self, files: Sequence[RemoteFile]) -> tuple[ConnectorEntry, ...]:
        return tuple(_entry(file, self._space_of(file.path)) for file in files)


def list_changes(
    files: Mapping[str, RemoteFile],
    cursor: str | None,
    *,
    size: int,
    not_pages: Sequence[str] = (),
    space_of: Callable[[str], str] = first_folder_of,
) -> Iterator[Listing]:
    """Yield batches of `size` files that changed since the cursor; what is gone is in the last batch.

    `files` are all files of the remote by path, and `space_of` returns the space of a path. Without a cursor
    of this module, everything is listed.
    """
    progress = ListingProgress(cursor, size=size, space_of=space_of)
    yield from progress.add(files.values())
    yield progress.finish(not_pages)


def _entry(file: RemoteFile, space: str) -> ConnectorEntry:
    title = file.title or file.path
    return ConnectorEntry(
        file.path, space, file.fingerprint, title=title, parent=file.parent, viewers=file.viewers
    )


def _write_cursor(fingerprints: Mapping[str, str]) -> str:
    return json.dumps({"version": CURSOR_VERSION, "files": fingerprints}, separators=(",", ":"))


def read_fingerprints(cursor: str | None) -> dict[str, str] | None:
    """Return the fingerprints of a cursor by path; None for a cursor of something else."""
    try:
        content = json.loads(cursor or "")
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("version") != CURSOR_VERSION:
        return None
    return dict(content["files"])

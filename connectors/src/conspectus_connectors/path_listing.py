"""Listings of remotes whose files are known by their paths: what changed since a cursor, in batches."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from conspectus.connectors import ConnectorEntry, Listing

CURSOR_VERSION: Final = 1
TOP_SPACE: Final = "."
"""The space of files outside any folder."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a remote: its path, and a text that changes with its content. Its title may be the path."""

    path: str
    fingerprint: str
    viewers: tuple[str, ...] | None = None
    title: str = ""


def first_folder_of(path: str) -> str:
    """Return the first folder of a path."""
    return path.partition("/")[0] if "/" in path else TOP_SPACE


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
    former = read_fingerprints(cursor)
    fingerprints = dict(former or {})
    changed = [path for path, file in files.items() if fingerprints.get(path) != file.fingerprint]
    while len(changed) > size:
        batch, changed = changed[:size], changed[size:]
        fingerprints |= {path: files[path].fingerprint for path in batch}
        yield Listing(_entries(batch, files, space_of), _write_cursor(fingerprints))
    spaces = {space_of(path) for path in files}
    yield Listing(
        _entries(changed, files, space_of),
        _write_cursor({path: file.fingerprint for path, file in files.items()}),
        gone=tuple(sorted(fingerprints.keys() - files.keys())),
        spaces_gone=tuple(sorted({space_of(path) for path in fingerprints} - spaces)),
        complete=former is None,
        not_pages=tuple(not_pages),
    )


def _entries(
    paths: Sequence[str], files: Mapping[str, RemoteFile], space_of: Callable[[str], str]
) -> tuple[ConnectorEntry, ...]:
    return tuple(_entry(files[path], space_of(path)) for path in paths)


def _entry(file: RemoteFile, space: str) -> ConnectorEntry:
    title = file.title or file.path
    return ConnectorEntry(file.path, space, file.fingerprint, title=title, viewers=file.viewers)


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

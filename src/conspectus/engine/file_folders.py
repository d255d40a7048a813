"""Folders: sources and the keys in them, as paths name them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

from conspectus.access.collection_access import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.model.files import FileEntry, path_of
from conspectus.model.records import Document, Source


@dataclass(frozen=True, slots=True)
class Folder:
    """A source, or the documents of it at and below the key that a path names."""

    access: CollectionAccess
    source: Source
    name: str
    """The name of the source in paths."""
    key: str = ""

    @property
    def prefix(self) -> str:
        """The prefix of the keys below the path."""
        return self.key if not self.key or self.key.endswith("/") else f"{self.key}/"

    @property
    def end(self) -> str | None:
        """The first possible key after those below the path; None for the whole source."""
        return next_key(self.prefix) if self.prefix else None

    def holds(self, document: Document) -> bool:
        """Return whether a document is at or below the path."""
        if document.source != self.source.id:
            return False
        return document.key == self.key or document.key.startswith(self.prefix)

    def path(self, key: str) -> str:
        """Return the path of a key."""
        return path_of(self.access.collection.name, self.name, key)

    def entry(self, document: Document) -> FileEntry:
        """Return a document as a file."""
        return FileEntry(
            self.path(document.key),
            document=document.id,
            title=document.title,
            kind=document.kind,
            characters=document.characters,
            updated=document.updated,
            trust=document.trust,
        )


def is_folder(source: Source) -> bool:
    """Return whether a source is named by a folder of a disk, as `add_files` names it."""
    return PurePosixPath(source.name).is_absolute() or PureWindowsPath(source.name).is_absolute()


def with_path_names(sources: Sequence[Source]) -> Sequence[tuple[Source, str]]:
    """Return sources with their names in paths.

    A folder of a disk has the name of its last part, unless another source has that name too.
    """
    short = {source.id: PureWindowsPath(source.name).name for source in sources if is_folder(source)}
    used = Counter([*short.values(), *(source.name for source in sources)])
    names = {id: name for id, name in short.items() if name and used[name] == 1}
    return [(source, names.get(source.id, source.name)) for source in sources]


def next_key(key: str) -> str:
    """Return the first possible key after a key, or after all keys in a folder."""
    if key.endswith("/"):
        # "0" is the character after "/".
        return f"{key[:-1]}0"
    return f"{key}\x01"

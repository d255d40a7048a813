"""A wiki in memory and its connector: the reference that the contract of connectors was written with."""

import json
from collections.abc import AsyncIterator, Set
from dataclasses import dataclass, field, replace

from conspectus.errors import NotFound
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument


@dataclass(slots=True)
class MemoryWiki:
    """Pages by key, and when each was last touched; a page that is gone stays as a mark."""

    pages: dict[str, tuple[ConnectorEntry, str]] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)
    time: int = 0

    async def put(self, space: str, name: str, text: str, *, parent: str | None = None) -> None:
        """Make or change a page; `parent` is the key of the one above, counted from 0 in order of making."""
        key = self._find(space, name) or f"{len(self.touched)}"
        self._touch(key)
        self.pages[key] = (ConnectorEntry(key, space, str(self.time), title=name, parent=parent), text)

    async def delete(self, space: str, name: str) -> None:
        """Delete a page."""
        key = self._find(space, name) or ""
        del self.pages[key]
        self._touch(key)

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        """Give a page another place or name."""
        key = self._find(space, name) or ""
        entry, text = self.pages[key]
        self._touch(key)
        self.pages[key] = (replace(entry, space=to_space, title=to_name, revision=str(self.time)), text)

    async def remove_space(self, space: str) -> None:
        """Delete a space with all its pages."""
        for key in [key for key, (entry, _) in self.pages.items() if entry.space == space]:
            del self.pages[key]
            self._touch(key)

    def spaces(self) -> set[str]:
        """The spaces that have pages."""
        return {entry.space for entry, _ in self.pages.values()}

    def _find(self, space: str, name: str) -> str | None:
        title = (space, name)
        return next((key for key, (e, _) in self.pages.items() if (e.space, e.title) == title), None)

    def _touch(self, key: str) -> None:
        self.time += 1
        self.touched[key] = self.time


@dataclass(slots=True)
class MemoryConnector:
    """The `Connector` port over a wiki in memory."""

    wiki: MemoryWiki
    batch: int = 2

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """What was touched after the cursor's time; the last batch says which spaces are gone."""
        before = _read(cursor)
        reached, seen_pages = before or (0, frozenset[str]())
        now, spaces = self.wiki.time, self.wiki.spaces()
        touched = sorted((time, key) for key, time in self.wiki.touched.items() if time > reached)
        if before is None:
            touched = [(time, key) for time, key in touched if key in self.wiki.pages]
        while len(touched) > self.batch:
            some, touched = touched[: self.batch], touched[self.batch :]
            yield self._listing(some, _cursor(some[-1][0], seen_pages | spaces))
        last = self._listing(touched, _cursor(now, spaces))
        yield replace(last, spaces_gone=tuple(sorted(seen_pages - spaces)), complete=before is None)

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """The page as it is now. Raises NotFound where it is gone."""
        if entry.key not in self.wiki.pages:
            raise NotFound("page", entry.key)
        current, text = self.wiki.pages[entry.key]
        return NewDocument(text, title=current.title, metadata={"path": f"{current.space}/{current.title}"})

    async def close(self) -> None:
        """Nothing is held."""

    def _listing(self, some: list[tuple[int, str]], cursor: str) -> Listing:
        pages = self.wiki.pages
        entries = tuple(pages[key][0] for _, key in some if key in pages)
        return Listing(entries, cursor, gone=tuple(key for _, key in some if key not in pages))


def _cursor(time: int, spaces: Set[str]) -> str:
    return json.dumps({"time": time, "spaces": sorted(spaces)})


def _read(cursor: str | None) -> tuple[int, frozenset[str]] | None:
    try:
        fields = json.loads(cursor or "")
        return int(fields["time"]), frozenset(fields["spaces"])
    except (ValueError, KeyError, TypeError):
        return None

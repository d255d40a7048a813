"""Pages and namespaces of a MediaWiki, and the cursor of a sync."""

import json
from collections.abc import (
    Collection,
    Mapping,
)
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from conspectus.deferred import dataclass
from conspectus.text.hashing import content_hash

MAIN = "Main"
VERSION = 1
REMEMBERED = timedelta(days=7)
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
FILE, CATEGORY = 6, 14


@dataclass(frozen=True, slots=True)
class WikiPageInfo:
    """A page in a listing."""

    key: str
    namespace: int
    title: str
    revision: str
    redirect: bool
    url: str | None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "WikiPageInfo | None":
        """Return the page of a response; None if it does not exist."""
        if answer.get("missing") or answer.get("invalid") or not answer.get("pageid"):
            return None
        title = str(answer["title"])
        return cls(
            key=str(int(answer["pageid"])),
            namespace=int(answer["ns"]),
            title=title,
            revision=f"{int(answer['lastrevid'])}-{content_hash(title)[:8]}",
            redirect=bool(answer.get("redirect")),
            url=str(answer["fullurl"]) if answer.get("fullurl") else None,
        )

    @property
    def above(self) -> str:
        """Return the title of the parent page, if the name has one."""
        return self.title.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Site:
    """The wiki's clock, its namespaces that are synced and those with subpages, and special names."""

    now: str
    spaces: Mapping[int, str]
    subpages: frozenset[int]
    files: frozenset[str]
    categories: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the spaces."""
        return frozenset(self.spaces.values())

    @classmethod
    def read(cls, query: Mapping[str, Any], ids: Collection[int] | None) -> "Site":
        """Read the response of `siteinfo`. By default, the content namespaces are synced."""
        namespaces = {
            int(namespace["id"]): namespace
            for namespace in query["namespaces"].values()
            if int(namespace["id"]) >= 0
        }
        now = datetime.strptime(str(query["general"]["time"]), FORMAT)
        selected = [number for number, namespace in sorted(namespaces.items()) if namespace.get("content")]
        if ids is not None:
            selected = [number for number in sorted(namespaces) if number in ids]
        return cls(
            now=now.strftime(FORMAT),
            spaces={number: str(namespaces[number]["name"]) or MAIN for number in selected},
            subpages=frozenset(
                number for number, namespace in namespaces.items() if namespace.get("subpages")
            ),
            files=_names(namespaces, FILE) | {"file", "image", "media"},
            categories=_names(namespaces, CATEGORY) | {"category"},
        )


@dataclass(frozen=True, slots=True)
class MediaWikiCursor:
    """A decoded cursor: start time of the next run, spaces, and revisions listed after that time.

    Without a time, everything has to be listed.
    """

    since: str = ""
    spaces: frozenset[str] = frozenset()
    seen: Mapping[str, str] = field(default_factory=dict)

    def cursor(self) -> str:
        """Encode the cursor."""
        state = {
            "version": VERSION,
            "since": self.since,
            "spaces": sorted(self.spaces),
            "seen": dict(self.seen),
        }
        return json.dumps(state, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "MediaWikiCursor | None":
        """Decode a cursor. Returns None if it is missing or unreadable."""
        try:
            state = json.loads(cursor or "")
            if state["version"] != VERSION:
                return None
            if state["since"]:
                datetime.strptime(state["since"], FORMAT)
            seen = {str(key): str(revision) for key, revision in state["seen"].items()}
            return cls(str(state["since"]), frozenset(map(str, state["spaces"])), seen)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def earlier(time: str, seconds: int) -> str:
    """Return the time a number of seconds earlier."""
    return (datetime.strptime(time, FORMAT) - timedelta(seconds=seconds)).strftime(FORMAT)


def too_old(since: str, now: str) -> bool:
    """Return whether the wiki may have deleted events since then."""
    return datetime.strptime(now, FORMAT) - datetime.strptime(since, FORMAT) > REMEMBERED


def _names(namespaces: Mapping[int, Mapping[str, Any]], number: int) -> frozenset[str]:
    namespace = namespaces.get(number, {})
    return frozenset(
        str(name).lower() for name in (namespace.get("name"), namespace.get("canonical")) if name
    )

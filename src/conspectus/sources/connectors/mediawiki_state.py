"""What MediaWiki says of itself and of its pages, and what a cursor remembers of it."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from conspectus.text.hashing import content_hash

MAIN = "Main"
VERSION = 1
REMEMBERED = timedelta(days=7)
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
FILE, CATEGORY = 6, 14


@dataclass(frozen=True, slots=True)
class WikiPageInfo:
    """A page as a listing shows it."""

    key: str
    namespace: int
    title: str
    revision: str
    redirect: bool
    url: str | None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "WikiPageInfo | None":
        """The page of an answer; nothing where it does not exist."""
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
        """The title of the page that this one is below of, if it is named so."""
        return self.title.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Site:
    """A wiki's clock, and its namespaces: those taken in, those with subpages, names of the special ones."""

    now: str
    spaces: Mapping[int, str]
    subpages: frozenset[int]
    files: frozenset[str]
    categories: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """The names of the spaces."""
        return frozenset(self.spaces.values())

    @classmethod
    def read(cls, query: Mapping[str, Any], wanted: Collection[int] | None) -> "Site":
        """From the answer to `siteinfo`; without wishes, the namespaces that hold content."""
        given = {int(each["id"]): each for each in query["namespaces"].values() if int(each["id"]) >= 0}
        now = datetime.strptime(str(query["general"]["time"]), FORMAT)
        taken = [number for number, each in sorted(given.items()) if each.get("content")]
        if wanted is not None:
            taken = [number for number in sorted(given) if number in wanted]
        return cls(
            now=now.strftime(FORMAT),
            spaces={number: str(given[number]["name"]) or MAIN for number in taken},
            subpages=frozenset(number for number, each in given.items() if each.get("subpages")),
            files=_names(given, FILE) | {"file", "image", "media"},
            categories=_names(given, CATEGORY) | {"category"},
        )


@dataclass(frozen=True, slots=True)
class MediaWikiCursor:
    """A cursor, read: since when to look, the spaces there were, and revisions of what was listed after that.

    Without a time, everything has to be listed.
    """

    since: str = ""
    spaces: frozenset[str] = frozenset()
    seen: Mapping[str, str] = field(default_factory=dict)

    def cursor(self) -> str:
        """As text."""
        whole = {
            "version": VERSION,
            "since": self.since,
            "spaces": sorted(self.spaces),
            "seen": dict(self.seen),
        }
        return json.dumps(whole, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "MediaWikiCursor | None":
        """The state; nothing where there is no cursor, or none that can be read."""
        try:
            given = json.loads(cursor or "")
            if given["version"] != VERSION:
                return None
            if given["since"]:
                datetime.strptime(given["since"], FORMAT)
            seen = {str(key): str(revision) for key, revision in given["seen"].items()}
            return cls(str(given["since"]), frozenset(map(str, given["spaces"])), seen)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def earlier(time: str, seconds: int) -> str:
    """The time so many seconds before."""
    return (datetime.strptime(time, FORMAT) - timedelta(seconds=seconds)).strftime(FORMAT)


def too_old(since: str, now: str) -> bool:
    """Whether the wiki may have forgotten some of what happened since."""
    return datetime.strptime(now, FORMAT) - datetime.strptime(since, FORMAT) > REMEMBERED


def _names(namespaces: Mapping[int, Mapping[str, Any]], number: int) -> frozenset[str]:
    given = namespaces.get(number, {})
    return frozenset(str(name).lower() for name in (given.get("name"), given.get("canonical")) if name)

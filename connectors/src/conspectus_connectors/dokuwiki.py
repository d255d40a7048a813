"""Pages of a DokuWiki. With `mirror`, the wiki says for each user who may read them."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from conspectus.connectors import (
    AccessListing,
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    Length,
    Listing,
    NewDocument,
    PacedFetcher,
    Secret,
)
from conspectus.errors import InvalidInput
from conspectus_connectors.dokuwiki_api import DokuWiki, WikiPage, example_pages, viewers_by_page
from conspectus_connectors.path_listing import TOP_SPACE, RemoteFile, list_changes

BATCH: Final = 500
_HEADING: Final = re.compile(r"^[ \t]*(={2,6})[ \t]*(.*?)[ \t]*={2,}[ \t]*$", re.MULTILINE)
HIGHEST_HEADING: Final = 7
"""A heading of the first level has six signs, one of the fifth has two."""


@dataclass(frozen=True)
class DokuWikiOptions(Checked):
    """How to reach a wiki, and as whom."""

    address: Annotated[
        str,
        Length(1, 2_000),
        "Address of the wiki's xmlrpc.php.",
        Example("https://wiki.example.org/lib/exe/xmlrpc.php"),
    ]
    user: Annotated[str, Length(1, 200), "Name of the user who reads; with mirror, a superuser."]
    password: Annotated[str, Length(1, 500), "Password of that user.", Secret] = field(repr=False)
    namespace: Annotated[str, Length(0, 500), "Namespace that is read; empty: all."] = ""
    mirror: Annotated[bool, "Let only those of `users` read whom the wiki lets read."] = False
    users: Annotated[tuple[str, ...], Length(0, 1_000), "Users whose rights are mirrored."] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        url = urlsplit(self.address)
        if url.scheme not in {"http", "https"} or not url.hostname or url.username or url.password:
            raise InvalidInput("address", "must be an http or https address without credentials")
        if self.mirror and not self.users:
            raise InvalidInput("users", "must name the users whose rights are mirrored")


class DokuWikis:
    """Creates connectors with DokuWikis."""

    title: ClassVar[str] = "DokuWiki"
    options: ClassVar[type[DokuWikiOptions]] = DokuWikiOptions

    def is_local(self, options: DokuWikiOptions) -> bool:
        """Return False: the fetcher reaches nothing inside without the settings' leave."""
        return False

    def create(self, options: DokuWikiOptions, site: ConnectionSite) -> "DokuWikiConnector":
        """Return the connector of a wiki."""
        wiki = DokuWiki(PacedFetcher(site.fetcher), options.address, options.user, options.password)
        kind = MirroringDokuWikiConnector if options.mirror else DokuWikiConnector
        return kind(wiki, options)


class DokuWikiConnector:
    """Reads pages. Keys are their ids: a renamed page is another one."""

    def __init__(self, wiki: DokuWiki, options: DokuWikiOptions, *, batch: int = BATCH) -> None:
        self._wiki = wiki
        self._options = options
        self._batch = batch

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield what changed since the cursor, by digests of the texts."""
        pages, viewers = await self._read_pages()
        files = {page.id: RemoteFile(page.id, page.digest, viewers.get(page.id)) for page in pages}
        for listing in list_changes(files, cursor, size=self._batch, space_of=namespace_of):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return a page as a document: headings as in Markdown, all else as it is written."""
        text = markdown_headings(await self._wiki.read_page(entry.key))
        name = entry.key.rpartition(":")[2]
        first_heading = re.search(r"^#+ (.+)$", text, re.MULTILINE)
        title = first_heading[1] if first_heading else name
        path = entry.key.replace(":", "/")
        return NewDocument(text, title=title, metadata={"path": path}, syntax="markdown")

    async def close(self) -> None:
        """Hold nothing."""

    async def _read_pages(self) -> tuple[list[WikiPage], dict[str, tuple[str, ...]]]:
        """Return all pages, and the viewers of those that have some."""
        return await self._wiki.list_pages(self._options.namespace), {}


class MirroringDokuWikiConnector(DokuWikiConnector):
    """Reads a wiki with the rights of its users. Viewers are users: `user:ann`."""

    async def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """Yield the pages whose viewers have changed. Groups are those that the wiki knows at this time."""
        _, viewers = await self._read_pages()
        former = _read_cursor(cursor)
        changed = {page: names for page, names in viewers.items() if former.get(page) != names}
        if changed or former.keys() != viewers.keys():
            yield AccessListing(json.dumps(viewers), changed)

    async def _read_pages(self) -> tuple[list[WikiPage], dict[str, tuple[str, ...]]]:
        """Return all pages and their viewers, which are read first."""
        ids = [page.id for page in await self._wiki.list_pages(self._options.namespace)]
        rules = await self._wiki.list_rules()
        examples = list(example_pages(ids, rules).values())
        readers = await self._wiki.list_readers(examples, self._options.users)
        viewers = viewers_by_page(ids, rules, readers)
        pages = await self._wiki.list_pages(self._options.namespace)
        return pages, {page: tuple(f"user:{name}" for name in names) for page, names in viewers.items()}


def namespace_of(page: str) -> str:
    """Return the first namespace of a page."""
    return page.partition(":")[0] if ":" in page else TOP_SPACE


def markdown_headings(text: str) -> str:
    """Return a text with its headings in Markdown."""
    return _HEADING.sub(lambda match: f"{'#' * (HIGHEST_HEADING - len(match[1]))} {match[2]}", text)


def _read_cursor(cursor: str | None) -> dict[str, tuple[str, ...]]:
    """Return the viewers of pages in a cursor; none for a cursor of something else."""
    try:
        return {str(page): tuple(map(str, names)) for page, names in json.loads(cursor or "").items()}
    except (ValueError, TypeError, AttributeError):
        return {}

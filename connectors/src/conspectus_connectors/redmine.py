"""Issues, wikis and news of a Redmine. With `mirror`, Redmine says for each person what they may read."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from conspectus.connectors import (
    AccessListing,
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    FileReader,
    Length,
    Listing,
    NewDocument,
    PacedFetcher,
    Secret,
)
from conspectus.errors import InvalidInput, NotFound
from conspectus_connectors.path_listing import ListingProgress, RemoteFile
from conspectus_connectors.redmine_api import Project, Redmine, news_index, wiki_index
from conspectus_connectors.redmine_documents import (
    list_notes,
    read_issue_document,
    read_news_document,
    read_private_notes,
    read_wiki_document,
)
from conspectus_connectors.redmine_rights import RedmineRights

BATCH: Final = 100
RECHECKED_ISSUES: Final = 100
"""Issues that each sync reads though their times are as before: a note that is edited changes no time."""
DIGEST_LETTERS: Final = 20
MAX_REMEMBERED: Final = 3 * BATCH
ISSUE, WIKI, NEWS, FILE, PRIVATE = "issue:", "wiki:", "news:", "file:", "private"
"""The parts of keys: `issue:12`, `issue:12/private`, `issue:12/file:7`, `wiki:team/Plan`, `news:3`."""


@dataclass(frozen=True)
class RedmineOptions(Checked):
    """How to reach a Redmine, and whose rights are mirrored."""

    address: Annotated[str, Length(1, 2_000), "Address of Redmine.", Example("https://redmine.example.org")]
    api_key: Annotated[
        str, Length(1, 200), "API key of the user who reads; with mirror, an administrator.", Secret
    ] = field(repr=False)
    projects: Annotated[
        tuple[str, ...], Length(0, 1_000), "Identifiers of the projects that are read; none: all."
    ] = ()
    mirror: Annotated[bool, "Let only those read whom Redmine lets read."] = False
    users: Annotated[
        tuple[str, ...], Length(0, 10_000), "Logins of those whose rights are mirrored; none: all."
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        url = urlsplit(self.address)
        extra = url.query or url.fragment or url.username or url.password
        if url.scheme not in {"http", "https"} or not url.hostname or extra:
            raise InvalidInput("address", "must be an http or https address without query and credentials")


class Redmines:
    """Creates connectors with Redmines."""

    title: ClassVar[str] = "Redmine"
    options: ClassVar[type[RedmineOptions]] = RedmineOptions

    def is_local(self, options: RedmineOptions) -> bool:
        """Return False: the fetcher reaches nothing inside without the settings' leave."""
        return False

    def create(self, options: RedmineOptions, site: ConnectionSite) -> "RedmineConnector":
        """Return the connector of a Redmine."""
        redmine = Redmine(PacedFetcher(site.fetcher), options.address, options.api_key)
        kind = MirroringRedmineConnector if options.mirror else RedmineConnector
        return kind(redmine, options, site.files)


class RedmineConnector:
    """Reads issues with their notes and files, wikis and news. An issue keeps its key when it moves."""

    def __init__(
        self, redmine: Redmine, options: RedmineOptions, files: FileReader, *, batch: int = BATCH
    ) -> None:
        self._redmine = redmine
        self._options = options
        self._files = files
        self._batch = batch
        self._issues: dict[int, dict[str, Any]] = {}
        """The issues that were read last, for the batch that is fetched next."""

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield what changed since the cursor, by times of issues, versions of pages and texts of news."""
        await self._require_reader()
        rights = await self._load_rights()
        projects = await self._list_projects()
        spaces: dict[str, str] = {}
        progress = ListingProgress(cursor, size=self._batch, space_of=spaces.__getitem__)
        spaces |= {key: _space_in(fingerprint) for key, fingerprint in progress.former.items()}
        not_pages: list[str] = []
        pages = await self._list_pages(projects, rights)
        async for files in self._iterate_files(pages, projects, rights, progress, not_pages):
            await self._require_reader()  # Without a valid key, Redmine answers as it does visitors.
            spaces |= {file.path: _space_in(file.fingerprint) for file in files}
            for listing in progress.add(files):
                yield listing
        await self._require_reader()
        yield progress.finish(not_pages)

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return an issue, its private notes, a file, a page or a piece of news as a document."""
        match _parse_key(entry.key):
            case "issue", number, "":
                return read_issue_document(await self._read_issue(int(number)), entry.space)
            case "issue", number, "private":
                issue = await self._read_issue(int(number))
                if not list_notes(issue, private=True):
                    raise NotFound("private notes of issue", number)
                return read_private_notes(issue, entry.space)
            case "issue", _, file:
                name, fetched = await self._redmine.read_attachment(int(file.removeprefix(FILE)))
                return await self._files.read(fetched.body, f"{entry.space}/{name}", charset=fetched.charset)
            case "news", number, _:
                return read_news_document(await self._redmine.read_news(int(number)), entry.space)
            case _, project, title:
                return read_wiki_document(await self._redmine.read_wiki_page(project, title), entry.space)

    async def close(self) -> None:
        """Hold nothing."""

    async def _iterate_files(
        self,
        pages: list[RemoteFile],
        projects: Mapping[int, Project],
        rights: RedmineRights | None,
        progress: ListingProgress,
        not_pages: list[str],
    ) -> AsyncIterator[list[RemoteFile]]:
        """Yield pages and news, then issues that may have changed, after they were read."""
        yield pages
        keys_by_issue = _group_by_issue(progress.former)
        rechecked = set(list(keys_by_issue)[:RECHECKED_ISSUES])
        newest = await self._redmine.read_newest_time()
        async for issues in self._iterate_issues(projects):
            unread: list[dict[str, Any]] = []
            for issue in issues:
                key = f"{ISSUE}{issue['id']}"
                beginning = f"{projects[issue['project']['id']].identifier} {issue['updated_on']} "
                is_as_before = progress.former.get(key, "").startswith(beginning)
                # Within a second, an issue can change again without another time.
                if is_as_before and issue["updated_on"] < newest and key not in rechecked:
                    progress.keep(keys_by_issue[key])
                else:
                    unread.append(issue)
            for start in range(0, len(unread), self._batch):
                numbers = [issue["id"] for issue in unread[start : start + self._batch]]
                parts = await self._read_issues(numbers, projects, not_pages)
                yield await self._add_viewers(parts, rights, progress.former)

    async def _read_issues(
        self, numbers: Sequence[int], projects: Mapping[int, Project], not_pages: list[str]
    ) -> dict[int, list[RemoteFile]]:
        """Return issues with their private notes and files, by the numbers of issues, without viewers."""
        parts: dict[int, list[RemoteFile]] = {}
        for number in numbers:
            try:
                issue = await self._redmine.read_issue(number)
            except NotFound:  # It was deleted since it was listed.
                continue
            project = projects.get(issue["project"]["id"])
            if project is None:
                continue
            self._remember(issue)
            parts[number] = _list_texts(issue, project.identifier)
            for attachment in issue["attachments"]:
                if self._files.reads(attachment["filename"]):
                    parts[number].append(_file_of(issue, attachment, project.identifier))
                else:
                    not_pages.append(f"{project.identifier}/{attachment['filename']}")
        return parts

    async def _add_viewers(
        self, parts: Mapping[int, list[RemoteFile]], rights: RedmineRights | None, former: Mapping[str, str]
    ) -> list[RemoteFile]:
        """Return the parts of issues. The viewers of what has changed are asked for after it was read."""
        if rights is None:
            return [file for files in parts.values() for file in files]
        changed = [
            number
            for number, files in parts.items()
            if any(former.get(file.path) != file.fingerprint for file in files)
        ]
        viewers = await rights.list_issue_viewers(changed)
        return [
            replace(file, viewers=self._viewers_of(file, number, viewers.get(number, ()), rights))
            for number, files in parts.items()
            for file in files
        ]

    def _viewers_of(
        self, file: RemoteFile, number: int, viewers: tuple[str, ...], rights: RedmineRights
    ) -> tuple[str, ...]:
        if not file.path.endswith(f"/{PRIVATE}"):
            return viewers
        return rights.select_note_viewers(self._issues[number]["project"]["id"], viewers)

    def _remember(self, issue: dict[str, Any]) -> None:
        self._issues.pop(issue["id"], None)
        self._issues[issue["id"]] = issue
        while len(self._issues) > MAX_REMEMBERED:
            del self._issues[next(iter(self._issues))]

    async def _read_issue(self, number: int) -> dict[str, Any]:
        return self._issues.get(number) or await self._redmine.read_issue(number)

    async def _list_pages(
        self, projects: Mapping[int, Project], rights: RedmineRights | None
    ) -> list[RemoteFile]:
        """Return the pages of wikis and the news of projects, with their viewers."""
        files: list[RemoteFile] = []
        for project in projects.values():
            pages = (
                await self._redmine.list_wiki_pages(project.identifier) if "wiki" in project.modules else []
            )
            path = wiki_index(project.identifier)
            viewers = await rights.list_page_viewers(project, path) if rights and pages else None
            for page in pages:
                key = f"{WIKI}{project.identifier}/{page['title']}"
                fingerprint = f"{project.identifier} {page['version']} {page['updated_on']}"
                files.append(RemoteFile(key, fingerprint, viewers, title=page["title"]))
        for news in await self._redmine.list_news():
            if news["project"]["id"] in projects:
                project = projects[news["project"]["id"]]
                path = news_index(project.identifier)
                viewers = await rights.list_page_viewers(project, path) if rights else None
                fingerprint = f"{project.identifier} {_digest(news)}"
                files.append(RemoteFile(f"{NEWS}{news['id']}", fingerprint, viewers, title=news["title"]))
        return files

    async def _list_projects(self) -> dict[int, Project]:
        """Return the projects that are read, by their numbers."""
        names = self._options.projects
        projects = await self._redmine.list_projects()
        return {project.id: project for project in projects if not names or project.identifier in names}

    async def _iterate_issues(self, projects: Mapping[int, Project]) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield all issues of projects, without their notes."""
        if projects:
            numbers = list(projects) if self._options.projects else []
            async for issues in self._redmine.iterate_issues(numbers):
                yield [issue for issue in issues if issue["project"]["id"] in projects]

    async def _require_reader(self) -> None:
        await self._redmine.require_reader()

    async def _load_rights(self) -> RedmineRights | None:
        return None


class MirroringRedmineConnector(RedmineConnector):
    """Reads a Redmine with the rights of its people. Viewers are their logins: `user:ann`."""

    _rights: RedmineRights | None = None
    """Those of the pass of permissions that came last. What follows it in a sync asks for no role again."""

    async def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """Yield the entries whose viewers have changed, as Redmine answers in the name of each person."""
        await self._require_reader()
        self._rights = rights = await RedmineRights.load(self._redmine, self._options.users)
        projects = await self._list_projects()
        pages = await self._list_pages(projects, rights)
        viewers = {page.path: page.viewers or () for page in pages}
        issues = [issue async for part in self._iterate_issues(projects) for issue in part]
        # Neighbors with the same answer are counted together.
        issues.sort(key=lambda issue: (issue["project"]["id"], issue["is_private"], issue["tracker"]["id"]))
        readers = await rights.list_issue_viewers([issue["id"] for issue in issues])
        for issue in issues:
            names = readers[issue["id"]]
            key = f"{ISSUE}{issue['id']}"
            viewers[key] = names
            viewers[f"{key}/{PRIVATE}"] = rights.select_note_viewers(issue["project"]["id"], names)
            viewers |= {f"{key}/{FILE}{file['id']}": names for file in issue["attachments"]}
        await self._require_reader()
        former = _read_access_cursor(cursor)
        changed = {key: names for key, names in viewers.items() if former.get(key) != names}
        if changed or former.keys() != viewers.keys():
            yield AccessListing(_write_access_cursor(viewers), changed)

    async def _require_reader(self) -> None:
        await self._redmine.require_reader(is_admin=True)

    async def _load_rights(self) -> RedmineRights:
        return self._rights or await RedmineRights.load(self._redmine, self._options.users)


def _list_texts(issue: dict[str, Any], space: str) -> list[RemoteFile]:
    """Return an issue, and its private notes if it has some."""
    key, title = f"{ISSUE}{issue['id']}", issue["subject"]
    names = [issue[name]["name"] for name in ("tracker", "status", "priority") if name in issue]
    digest = _digest([title, issue["description"], list_notes(issue, private=False), names])
    texts = [RemoteFile(key, f"{space} {issue['updated_on']} {digest}", title=title)]
    private_notes = list_notes(issue, private=True)
    if private_notes:
        fingerprint = f"{space} {_digest([title, private_notes])}"
        texts.append(
            RemoteFile(f"{key}/{PRIVATE}", fingerprint, title=f"{title} (private notes)", parent=key)
        )
    return texts


def _file_of(issue: dict[str, Any], attachment: dict[str, Any], space: str) -> RemoteFile:
    """Return a file of an issue, whose bytes never change."""
    key, name = f"{ISSUE}{issue['id']}", attachment["filename"]
    return RemoteFile(f"{key}/{FILE}{attachment['id']}", f"{space} {name}", title=name, parent=key)


def _parse_key(key: str) -> tuple[str, str, str]:
    """Return the kind of a key, its number or project, and what is left."""
    kind, _, rest = key.partition(":")
    name, _, part = rest.partition("/")
    return kind, name, part


def _group_by_issue(fingerprints: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the keys of issues with those of all of their parts, in the order of a cursor."""
    issues: dict[str, list[str]] = {}
    for key in fingerprints:
        if key.startswith(ISSUE):
            issues.setdefault(key.partition("/")[0], []).append(key)
    return issues


def _space_in(fingerprint: str) -> str:
    return fingerprint.partition(" ")[0]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:DIGEST_LETTERS]


def _write_access_cursor(viewers: Mapping[str, tuple[str, ...]]) -> str:
    """Return the viewers of entries as a text that has equal viewers once."""
    positions = {names: position for position, names in enumerate(dict.fromkeys(viewers.values()))}
    keys = {key: positions[names] for key, names in viewers.items()}
    return json.dumps({"viewers": list(positions), "keys": keys})


def _read_access_cursor(cursor: str | None) -> dict[str, tuple[str, ...]]:
    """Return the viewers of entries in a cursor; none for a cursor of something else."""
    try:
        content = json.loads(cursor or "")
        viewers = [tuple(map(str, names)) for names in content["viewers"]]
        return {str(key): viewers[position] for key, position in content["keys"].items()}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {}

"""The connector with Redmine, held to the kit on a real server, whose people ask with keys of their own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.connection_sites import open_site
from tests.support.gated_office import GatedOffice, NamedSpaces, id_of
from tests.support.redmine_server import (
    ADMINISTRATOR,
    BUG,
    DEVELOPER,
    FEATURE,
    FEATURE_READER,
    GROUPS,
    MANAGER,
    NEWCOMER,
    OWNER_OF_ISSUES,
    PEOPLE,
    REPORTER,
    RedmineServer,
    key_of,
    run_redmine,
)
from tests.support.source_servers import require_source_servers

from conspectus.connectors import EVERYONE, ConnectorEntry
from conspectus.errors import FetchFailed, InvalidInput
from conspectus.testing.connectors import ConnectorProperties, Copy, MirroringProperties, open_gate
from conspectus_connectors.redmine import MirroringRedmineConnector, RedmineOptions, Redmines
from conspectus_connectors.redmine_api import Redmine

pytestmark = pytest.mark.sources
ROLES = (MANAGER, DEVELOPER, REPORTER, OWNER_OF_ISSUES, FEATURE_READER, NEWCOMER)


@dataclass
class IssueOffice(GatedOffice):
    """A Redmine, as its people change it. Pages are issues, and their viewers are members of the project.

    Roles, private issues, assignees and trackers differ from page to page. Who may read is Redmine's answer.
    """

    server: RedmineServer
    mirror: bool
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    kind: str = "redmine"
    people: tuple[str, ...] = tuple(f"user:{login}" for login in PEOPLE)
    groups: tuple[str, ...] = tuple(f"group:{name}" for name in GROUPS)

    @property
    def options(self) -> dict[str, Any]:
        return {"address": self.gate.address, "mirror": self.mirror}

    @property
    def credentials(self) -> dict[str, str]:
        return {"api_key": key_of(ADMINISTRATOR)}

    def connect(self) -> NamedSpaces:
        options = RedmineOptions(**{**self.options, **self.credentials})
        connector = Redmines().create(options, self.site)
        connector._batch = 2
        return NamedSpaces(connector, self.spaces)

    async def administer(self, method: str, path: str, content: Any = None) -> Any:
        return await asyncio.to_thread(self.server.call, method, path, content)

    async def open_project(self, space: str) -> str:
        """Make a project that has none of its name, and return its identifier."""
        name = id_of(space)
        if name not in self.spaces:
            self.spaces[name] = space
            project = {"name": space, "identifier": name, "is_public": False}
            await self.administer("POST", "/projects.json", {"project": project})
        return name

    async def put(self, space: str, name: str, text: str) -> None:
        fields: dict[str, Any] = {"subject": name, "description": text}
        number = self.numbers.get((space, name))
        if number is not None:
            await self.administer("PUT", f"/issues/{number}.json", {"issue": fields})
            return
        project = await self.open_project(space)
        tracker = FEATURE if digit_of(name) % 3 == 0 else BUG
        fields |= {"project_id": project, "tracker_id": tracker, "is_private": digit_of(name) % 2}
        issue = await self.administer("POST", "/issues.json", {"issue": fields})
        self.numbers[space, name] = issue["issue"]["id"]

    async def delete(self, space: str, name: str) -> None:
        await self.administer("DELETE", f"/issues/{self.numbers.pop((space, name))}.json")

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        number = self.numbers.pop((space, name))
        self.numbers[to_space, to_name] = number
        fields = {"subject": to_name, "project_id": await self.open_project(to_space)}
        await self.administer("PUT", f"/issues/{number}.json", {"issue": fields})

    async def remove_space(self, space: str) -> None:
        await self.administer("DELETE", f"/projects/{id_of(space)}.json")

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        """Make viewers members of the project, each with a role. For everyone, the project is public."""
        path = f"/projects/{id_of(space)}"
        for kind in ("group", "user"):  # What people have by a group goes with the group.
            memberships = (await self.administer("GET", f"{path}/memberships.json"))["memberships"]
            for membership in memberships:
                if kind in membership:
                    await self.administer("DELETE", f"/memberships/{membership['id']}.json")
        principals = sorted(viewers - {EVERYONE}, reverse=True)  # People before their groups.
        for position, principal in enumerate(principals):
            role = ROLES[(digit_of(name) + len(principals) + position) % len(ROLES)]
            membership = {"user_id": principal_of(principal), "role_ids": [role]}
            await self.administer("POST", f"{path}/memberships.json", {"membership": membership})
        is_public = EVERYONE in viewers
        await self.administer("PUT", f"{path}.json", {"project": {"is_public": is_public}})
        issue = {"assigned_to_id": principal_of(principals[-1]) if principals else ""}
        path = f"/issues/{self.numbers[space, name]}.json"
        response = await asyncio.to_thread(self.server.send, "PUT", path, {"issue": issue})
        assert response.status_code in {204, 422}, "some roles let nobody be an assignee"

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        people = members & set(self.people)  # A group of Redmine has no groups.
        numbers: list[Any] = [principal_of(person) for person in people] or [""]
        await self.administer("PUT", f"/groups/{principal_of(group)}.json", {"group": {"user_ids": numbers}})

    async def may_read(self, person: str, space: str, name: str) -> bool:
        path = f"/issues/{self.numbers[space, name]}.json"
        return await asyncio.to_thread(self.server.may_open, person.removeprefix("user:"), path)


def digit_of(name: str) -> int:
    """The number at the end of a name; 0 without one."""
    return int(name[-1]) if name[-1:].isdecimal() else 0


def principal_of(viewer: str) -> int:
    """The number of a person or a group."""
    kind, _, name = viewer.partition(":")
    return (PEOPLE if kind == "user" else GROUPS)[name]


@pytest.fixture(scope="session")
def redmine() -> Iterator[RedmineServer]:
    require_source_servers()
    with run_redmine() as server:
        yield server


@pytest.fixture
async def issue_office(redmine: RedmineServer) -> AsyncIterator[IssueOffice]:
    redmine.empty()
    async with open_gate(redmine.port) as gate, open_site() as site:
        yield IssueOffice(gate, site, redmine, mirror=False)


@pytest.fixture
def guarded_issue_office(issue_office: IssueOffice) -> IssueOffice:
    issue_office.mirror = True
    return issue_office


class TestRedmines(ConnectorProperties):
    server = "issue_office"


class TestMirroredRedmines(MirroringProperties):
    server = "guarded_issue_office"


@dataclass
class Content:
    """What a connector reads of a project, and who may read it."""

    entries: dict[str, ConnectorEntry]
    texts: dict[str, str]
    viewers: dict[str, tuple[str, ...]]
    not_pages: tuple[str, ...]


async def read_all(office: IssueOffice, **others: Any) -> Content:
    """Everything that a new connector lists, with its texts and what a pass of permissions tells."""
    options = RedmineOptions(**{**office.options, **office.credentials, **others})
    connector = Redmines().create(options, office.site)
    viewers: dict[str, tuple[str, ...]] = {}
    if isinstance(connector, MirroringRedmineConnector):
        viewers = {key: names async for part in connector.access(None) for key, names in part.viewers.items()}
    listings = [listing async for listing in connector.changes(None)]
    entries = {entry.key: entry for listing in listings for entry in listing.entries}
    texts = {key: (await connector.fetch(entry)).text for key, entry in entries.items()}
    return Content(entries, texts, viewers, listings[-1].not_pages)


@pytest.fixture
async def staffed_office(guarded_issue_office: IssueOffice) -> IssueOffice:
    """A project whose four people have different roles, with one issue."""
    office = guarded_issue_office
    await office.put("One", "first", "alpha words")
    for person, role in zip(PEOPLE, (MANAGER, REPORTER, OWNER_OF_ISSUES, FEATURE_READER), strict=True):
        membership = {"user_id": PEOPLE[person], "role_ids": [role]}
        await office.administer("POST", "/projects/one/memberships.json", {"membership": membership})
    return office


async def test_private_notes_are_read_by_those_whose_role_may(staffed_office: IssueOffice) -> None:
    office = staffed_office
    number = office.numbers["One", "first"]
    for text, is_private in (("an open note", False), ("a secret note", True)):
        note = {"notes": text, "private_notes": is_private}
        await office.administer("PUT", f"/issues/{number}.json", {"issue": note})
    content = await read_all(office)
    key = f"issue:{number}"
    assert "an open note" in content.texts[key]
    assert "secret" not in content.texts[key]
    assert "a secret note" in content.texts[f"{key}/private"]
    for person in PEOPLE:
        path = f"/issues/{number}.json?include=journals"
        answer = office.server.send("GET", path, user=person)
        for part, text in ((key, "an open note"), (f"{key}/private", "a secret note")):
            is_shown = answer.status_code == 200 and text in answer.text
            assert (f"user:{person}" in (content.entries[part].viewers or ())) == is_shown, (person, part)
            assert (f"user:{person}" in content.viewers[part]) == is_shown


async def test_wikis_and_news_are_read_by_those_whose_role_may(staffed_office: IssueOffice) -> None:
    office = staffed_office
    page = {"wiki_page": {"text": "h1. Plans\n\nwiki words"}}
    await office.administer("PUT", "/projects/one/wiki/Our_Plans.json", page)
    news = {"news": {"title": "Launch", "summary": "soon", "description": "news words"}}
    await office.administer("POST", "/projects/one/news.json", news)
    content = await read_all(office)
    [news_key] = [key for key in content.entries if key.startswith("news:")]
    assert content.texts["wiki:one/Our_Plans"] == "# Plans\n\nwiki words"
    assert content.texts[news_key] == "soon\n\nnews words"
    paths = {
        "wiki:one/Our_Plans": "/projects/one/wiki/Our_Plans.json",
        news_key: f"/news/{news_key[5:]}.json",
    }
    for key, path in paths.items():
        readers = {f"user:{person}" for person in PEOPLE if office.server.may_open(person, path)}
        assert set(content.entries[key].viewers or ()) == readers | {"user:admin"}
        assert set(content.viewers[key]) == readers | {"user:admin"}
        assert 0 < len(readers) < len(PEOPLE)


async def test_files_of_issues_are_documents_of_their_own(staffed_office: IssueOffice) -> None:
    office = staffed_office
    for name, content_type in (("prices.csv", "text/csv"), ("film.mp4", "video/mp4")):
        token = office.server.upload(name, b"part,price\npump,90\n")
        uploads = [{"token": token, "filename": name, "content_type": content_type}]
        path = f"/issues/{office.numbers['One', 'first']}.json"
        await office.administer("PUT", path, {"issue": {"uploads": uploads}})
    content = await read_all(office)
    [key] = [key for key in content.entries if "/file:" in key]
    assert "pump" in content.texts[key]
    assert content.entries[key].parent == key.partition("/")[0]
    assert content.viewers[key] == content.viewers[key.partition("/")[0]]
    assert content.not_pages == ("one/film.mp4",)


async def test_closed_projects_are_read_and_archived_ones_are_not(staffed_office: IssueOffice) -> None:
    office = staffed_office
    await office.put("Two", "second", "beta words")
    office.server.call("PUT", "/projects/one/close.json")
    assert set((await read_all(office)).texts.values()) == {"alpha words", "beta words"}
    office.server.call("PUT", "/projects/one/archive.json")
    content = await read_all(office)
    office.server.call("PUT", "/projects/one/unarchive.json")
    assert set(content.texts.values()) == {"beta words"}


async def test_chosen_projects_and_people_alone_are_read(staffed_office: IssueOffice) -> None:
    office = staffed_office
    await office.put("Two", "second", "beta words")
    content = await read_all(office, projects=("two", "none"), users=("ann", "admin", "nobody"))
    assert list(content.texts.values()) == ["beta words"]
    assert content.viewers[next(iter(content.entries))] == ("user:admin",)
    assert (await read_all(office, projects=("none",))).entries == {}


async def test_a_person_who_is_locked_reads_nothing(staffed_office: IssueOffice) -> None:
    office = staffed_office
    key = f"issue:{office.numbers['One', 'first']}"
    assert "user:ann" in (await read_all(office)).viewers[key]
    try:
        await office.administer("PUT", f"/users/{PEOPLE['ann']}.json", {"user": {"status": 3}})
        assert "user:ann" not in (await read_all(office)).viewers[key]
        assert "user:ann" not in (await read_all(office, users=("ann", "ben"))).viewers[key]
    finally:
        await office.administer("PUT", f"/users/{PEOPLE['ann']}.json", {"user": {"status": 1}})


async def test_an_edited_note_is_found_though_no_time_changes(staffed_office: IssueOffice) -> None:
    office = staffed_office
    number = office.numbers["One", "first"]
    await office.administer("PUT", f"/issues/{number}.json", {"issue": {"notes": "a careless note"}})
    await office.put("One", "later", "beta words")
    copy = Copy(office)
    await copy.follow()
    journal = office.server.call("GET", f"/issues/{number}.json?include=journals")["issue"]["journals"][0]
    note = {"journal": {"notes": "a careless note", "private_notes": True}}
    office.server.call("PUT", f"/journals/{journal['id']}.json", note)
    await copy.follow()
    assert [text for _, text in copy.pages.values() if "careless" in text] == [
        copy.pages[f"issue:{number}/private"][1]
    ]


async def test_a_key_that_is_not_an_administrators_mirrors_nothing(staffed_office: IssueOffice) -> None:
    for user, reason in (("ann", "administrator"), ("stranger", "HTTP 401")):
        with pytest.raises(FetchFailed, match=reason) as caught:
            await read_all(staffed_office, api_key=key_of(user))
        assert caught.value.refused
    assert len((await read_all(staffed_office, api_key=key_of("ann"), mirror=False)).entries) == 1


async def test_readable_issues_are_counted_and_asked_for_in_halves(staffed_office: IssueOffice) -> None:
    """Managers read all, and others a part, wherever it lies."""
    office = staffed_office
    for number in range(7):
        await office.put("One", f"page{number}", "words")
    redmine = Redmine(office.site.fetcher, office.gate.address, key_of(ADMINISTRATOR))
    numbers = [*office.numbers.values(), 10**6]
    before = office.requests
    assert await redmine.list_readable_issues(numbers[:8], "ann", counted=4, listed=1) == set(numbers[:8])
    assert office.requests - before == 2
    for person in PEOPLE:
        answer = office.server.call("GET", "/issues.json?status_id=*&limit=100", user=person)
        readable = {issue["id"] for issue in answer["issues"]}
        assert await redmine.list_readable_issues(numbers, person, counted=4, listed=1) == readable
        assert await redmine.list_readable_issues(numbers, person) == readable
    assert await redmine.list_readable_issues(numbers, "stranger") == set()


@pytest.mark.parametrize("address", ["ftp://a", "https://me:pin@a", "https://a?key=1"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="address: must be an http or https address"):
        RedmineOptions(address, "secret")

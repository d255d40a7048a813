"""The connector with DokuWiki, held to the kit on a real wiki with real rules."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.connection_sites import open_site
from tests.support.dokuwiki_server import ADMINISTRATOR, PASSWORD, PATH, DokuWikiServer, run_dokuwiki
from tests.support.gated_office import GatedOffice, NamedSpaces, id_of
from tests.support.source_servers import require_source_servers

from conspectus.connectors import EVERYONE
from conspectus.errors import InvalidInput
from conspectus.testing.connectors import (
    ConnectorProperties,
    Copy,
    MirroringProperties,
    open_gate,
)
from conspectus_connectors.dokuwiki import DokuWikiOptions, DokuWikis

pytestmark = pytest.mark.sources
USERS = ("ann", "ben", "cy", "dee")


@dataclass
class WikiOffice(GatedOffice):
    """A wiki, as its users change it."""

    server: DokuWikiServer
    mirror: bool
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    kind: str = "dokuwiki"
    people: tuple[str, ...] = tuple(f"user:{name}" for name in USERS)
    groups: tuple[str, ...] = ("group:a", "group:b")

    def __post_init__(self) -> None:
        self.write_users()

    @property
    def options(self) -> dict[str, Any]:
        users = {"users": list(USERS)} if self.mirror else {}
        address = f"{self.gate.address}{PATH}"
        return {"address": address, "user": ADMINISTRATOR, "mirror": self.mirror, **users}

    @property
    def credentials(self) -> dict[str, str]:
        return {"password": PASSWORD}

    def connect(self) -> NamedSpaces:
        options = DokuWikiOptions(**{**self.options, "users": USERS}, **self.credentials)
        connector = DokuWikis().create(options, self.site)
        connector._batch = 2
        return NamedSpaces(connector, self.spaces)

    async def administer(self, method: str, *parameters: Any) -> Any:
        return await asyncio.to_thread(self.server.call, ADMINISTRATOR, method, *parameters)

    async def put(self, space: str, name: str, text: str) -> None:
        self.spaces[id_of(space)] = space
        await self.administer("wiki.putPage", self.page(space, name), text, {})

    async def delete(self, space: str, name: str) -> None:
        await self.administer("wiki.putPage", self.page(space, name), "", {})

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        text = await self.administer("wiki.getPage", self.page(space, name))
        await self.put(to_space, to_name, text)
        await self.delete(space, name)

    async def remove_space(self, space: str) -> None:
        for row in await self.administer("dokuwiki.getPagelist", id_of(space), {"depth": 0}):
            await self.administer("wiki.putPage", row["id"], "", {})

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        page = self.page(space, name)
        for viewer in (*self.people, *self.groups):
            who = viewer.replace("user:", "").replace("group:", "@")
            self.server.rules.pop((page, who), None)
            if viewer in viewers:
                self.server.rules[page, who] = 1
        self.server.rules[page, "@ALL"] = int(EVERYONE in viewers)
        self.server.write_rules()

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        self.members[group] = members
        self.write_users()

    def write_users(self) -> None:
        """Write the users with the groups that they are in."""
        self.server.write_users({
            person.removeprefix("user:"): frozenset(
                group.removeprefix("group:") for group, members in self.members.items() if person in members
            )
            for person in self.people
        })  # fmt: skip

    async def may_read(self, person: str, space: str, name: str) -> bool:
        page = self.page(space, name)
        return await asyncio.to_thread(self.server.may_read, person.removeprefix("user:"), page)

    def page(self, space: str, name: str) -> str:
        return f"{id_of(space)}:{id_of(name)}"


@pytest.fixture
def dokuwiki() -> Iterator[DokuWikiServer]:
    require_source_servers()
    with run_dokuwiki() as server:
        yield server


@pytest.fixture
async def wiki_office(dokuwiki: DokuWikiServer) -> AsyncIterator[WikiOffice]:
    async with open_gate(dokuwiki.port) as gate, open_site() as site:
        yield WikiOffice(gate, site, dokuwiki, mirror=False)


@pytest.fixture
def guarded_wiki_office(wiki_office: WikiOffice) -> WikiOffice:
    wiki_office.mirror = True
    return wiki_office


class WikiProperties:
    follows_moves = False

    async def test_a_page_is_emptied(self, copy: Copy) -> None:
        """An empty page is a deleted one, as in the wiki."""
        await copy.store.put("One", "first", "")
        await copy.follow()
        assert copy.texts() == {"One": ["beta words"], "Two": ["gamma words"]}


class TestDokuWikis(WikiProperties, ConnectorProperties):
    server = "wiki_office"


class TestMirroredDokuWikis(WikiProperties, MirroringProperties):
    server = "guarded_wiki_office"


def test_users_are_needed_to_mirror() -> None:
    with pytest.raises(InvalidInput, match="users: must name the users"):
        DokuWikiOptions("https://wiki.example.org/lib/exe/xmlrpc.php", "reader", PASSWORD, mirror=True)

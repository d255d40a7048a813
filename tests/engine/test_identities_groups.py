"""Memberships by groups of a real directory with 500 people and 20 groups."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.samples import NOON
from tests.support.slapd_server import PASSWORD, READER, SlapdServer, group, person, run_slapd
from tests.waiting import until

import conspectus
from conspectus.access.sign_ins import identity_id
from conspectus.engine import Engine
from conspectus.engine.group_sync import GroupSync
from conspectus.errors import FetchFailed, InvalidInput, PermissionDenied
from conspectus.model.access import Principal, User
from conspectus.model.identities import DIRECTORY_ISSUER, Identity
from conspectus.model.ids import UserId
from conspectus.settings import Settings

pytestmark = pytest.mark.sources
PEOPLE, GROUPS = 500, 20
PER_GROUP = PEOPLE // GROUPS
ISSUER = "https://login.example.org"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlapdServer]:
    members = {
        f"team{team}": [person(number) for number in range(team * PER_GROUP, (team + 1) * PER_GROUP)]
        for team in range(GROUPS)
    }
    with run_slapd(tmp_path_factory.mktemp("slapd")) as server:
        server.fill(PEOPLE, members)
        yield server


def settings_for(server: SlapdServer, **changes: object) -> Settings:
    usual = {
        "embedder": "none",
        "ldap_url": server.url,
        "ldap_bind_dn": READER,
        "ldap_bind_password": PASSWORD,
        "ldap_ca_file": server.ca_file,
        "ldap_subject": "employeeNumber",
        "ldap_timeout_seconds": 5,
    }
    return Settings(**{**usual, **changes})  # type: ignore[arg-type]


@dataclass
class Office:
    """A store with three teams that are mapped, and the directory."""

    engine: Engine
    server: SlapdServer

    async def members(self, name: str) -> list[str]:
        return [user.name for user in await self.engine.people.list_members(name)]

    async def changes(self) -> list[tuple[str, str, str, str]]:
        """The memberships in the audit log that the directory changed, oldest first."""
        entries = (await self.engine.access.list_audit(limit=1_000)).entries
        rows = [(row.actor_name, row.action, row.subject_name, row.detail) for row in reversed(entries)]
        return [row for row in rows if row[0] == "ldap"]


@pytest.fixture
async def office(tmp_path: Path, server: SlapdServer) -> AsyncIterator[Office]:
    settings = settings_for(server, oidc_issuer=ISSUER, oidc_audience="https://context.example.org")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        for number in (0, 1, PER_GROUP):
            await engine.people.create_user(f"user{number}")
            await engine.identities.map_identity(f"user{number}", f"e{number}", issuer=DIRECTORY_ISSUER)
        for team in range(2):
            await engine.people.create_group(f"crew{team}")
            await engine.identities.map_group_claim(group(f"team{team}"), f"crew{team}", issuer="ldap")
        yield Office(engine, server)


async def test_all_people_of_twenty_groups_are_members_after_one_reading(
    tmp_path: Path, server: SlapdServer
) -> None:
    async with conspectus.open(tmp_path, settings=settings_for(server)) as engine:
        for team in range(GROUPS):
            await engine.people.create_group(f"crew{team}")
            await engine.identities.map_group_claim(group(f"team{team}"), f"crew{team}", issuer="ldap")
        for number in range(PEOPLE):
            user = User(UserId(str(uuid4())), f"user{number}", NOON)
            id = identity_id(DIRECTORY_ISSUER, f"e{number}")
            identity = Identity(id, DIRECTORY_ISSUER, f"e{number}", user.id, NOON)
            await engine._context.parts.accounts.add_identity(identity, new_user=user)
        planned = await engine.identities.sync_groups(dry_run=True)
        assert (planned.joined, await engine.people.list_members("crew3")) == (PEOPLE, [])
        report = await engine.identities.sync_groups()
        counts = (report.groups, report.members, report.joined, report.left, report.unmapped, report.gone)
        assert counts == (GROUPS, PEOPLE, PEOPLE, 0, (), ())
        for team in range(GROUPS):
            assert len(await engine.people.list_members(f"crew{team}")) == PER_GROUP
        again = await engine.identities.sync_groups()
        assert (again.joined, again.left) == (0, 0)


async def test_only_mapped_people_join_and_each_change_is_in_the_audit_log(office: Office) -> None:
    report = await office.engine.identities.sync_groups()
    assert (report.members, report.joined, len(report.unmapped)) == (2 * PER_GROUP, 3, 2 * PER_GROUP - 3)
    assert await office.members("crew0") == ["user0", "user1"]
    await office.engine.collections.create("wiki")
    crew = next(crew for crew in await office.engine.people.list_groups() if crew.name == "crew0")
    await office.engine.access.grant("wiki", Principal("group", crew.id), "viewer")
    office.server.remove_members(group("team0"), person(1))
    try:
        assert (await office.engine.identities.sync_groups()).left == 1
    finally:
        office.server.add_members(group("team0"), person(1))
    assert await office.members("crew0") == ["user0"]
    assert sorted(await office.changes()) == [
        ("ldap", "add_member", "user0", "group crew0; by LDAP"),
        ("ldap", "add_member", "user1", "group crew0; by LDAP"),
        ("ldap", "add_member", f"user{PER_GROUP}", "group crew1; by LDAP"),
        ("ldap", "remove_member", "user1", "group crew0; by LDAP"),
    ]


async def test_neither_a_mail_nor_a_name_leads_to_anybody(office: Office) -> None:
    """The mail, the login and the full name of a person in the directory are names of users here."""
    for name in ("person2@example.org", "person2", "Person 2"):
        await office.engine.people.create_user(name)
        await office.engine.identities.map_identity(name, name, issuer="ldap")
    await office.engine.identities.sync_groups()
    assert await office.members("crew0") == ["user0", "user1"]


async def test_memberships_by_people_stay_and_are_not_taken_over(office: Office) -> None:
    await office.engine.people.create_user("guest")
    await office.engine.people.add_member("crew0", "guest")
    await office.engine.people.add_member("crew0", "user0")
    assert (await office.engine.identities.sync_groups()).joined == 2
    [group_claim, _] = await office.engine.identities.list_group_claims()
    await office.engine.identities.unmap_group_claim(group_claim.id)
    assert await office.members("crew0") == ["guest", "user0"]


async def test_an_unmapped_person_leaves_at_once(office: Office) -> None:
    await office.engine.identities.sync_groups()
    [identity] = await office.engine.identities.list_identities("user1")
    await office.engine.identities.unmap_identity(identity.id)
    assert await office.members("crew0") == ["user0"]


async def test_nothing_changes_if_the_directory_cannot_be_read_completely(
    office: Office, tmp_path: Path
) -> None:
    await office.engine.identities.sync_groups()
    settings = settings_for(office.server, ldap_max_members=5)
    await office.engine.close()
    async with conspectus.open(tmp_path, settings=settings) as engine:
        with pytest.raises(FetchFailed, match="more than 5 members"):
            await engine.identities.sync_groups()
        assert len(await engine.people.list_members("crew0")) == 2
    async with conspectus.open(tmp_path, settings=settings_for(office.server)) as engine:
        office.server.stop()
        try:
            with pytest.raises(FetchFailed):
                await engine.identities.sync_groups()
            [problem] = (await engine.maintenance.check()).settings
            assert problem.startswith("groups of the directory cannot be read: ldaps://127.0.0.1")
        finally:
            office.server.start()
        assert len(await engine.people.list_members("crew0")) == 2


async def test_memberships_end_with_a_deleted_group(office: Office) -> None:
    office.server.fill_groups({"project": [person(0)]})
    await office.engine.people.create_group("project")
    await office.engine.identities.map_group_claim(group("project"), "project", issuer="ldap")
    await office.engine.identities.sync_groups()
    assert await office.members("project") == ["user0"]
    office.server.delete(group("project"))
    report = await office.engine.identities.sync_groups()
    assert (report.gone, report.left, await office.members("project")) == ((group("project"),), 1, [])


async def test_the_attribute_may_be_the_subject_of_tokens(office: Office, tmp_path: Path) -> None:
    await office.engine.people.create_user("dora")
    await office.engine.identities.map_identity("dora", "e3")
    assert "dora" not in await office.members("crew0")
    await office.engine.close()
    settings = settings_for(
        office.server,
        ldap_subject_issuer="oidc",
        oidc_issuer=ISSUER,
        oidc_audience="https://context.example.org",
    )
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.identities.sync_groups()
        assert [user.name for user in await engine.people.list_members("crew0")] == ["dora", "user0", "user1"]
        [identity] = await engine.identities.list_identities("dora")
        await engine.identities.unmap_identity(identity.id)
        assert [user.name for user in await engine.people.list_members("crew0")] == ["user0", "user1"]


async def test_groups_are_read_in_the_background(office: Office) -> None:
    await office.engine.identities.start()

    async def are_members() -> bool:
        return await office.members("crew0") == ["user0", "user1"]

    await until(are_members)
    assert len(await office.changes()) == 3


async def test_only_the_owner_reads_groups_and_only_where_a_directory_is_set(
    office: Office, tmp_path: Path
) -> None:
    key = await office.engine.keys.create("user0")
    ann = office.engine.as_person(await office.engine.keys.authenticate(key.secret))
    with pytest.raises(PermissionDenied):
        await ann.identities.sync_groups()
    async with conspectus.open(tmp_path / "plain", settings=Settings(embedder="none")) as engine:
        with pytest.raises(InvalidInput, match="ldap_url"):
            await engine.identities.sync_groups()
        await engine.people.create_group("crew0")
        with pytest.raises(InvalidInput, match="ldap_url"):
            await engine.identities.map_group_claim(group("team0"), "crew0", issuer="ldap")
        await GroupSync(engine._context).sync_when_due()


@pytest.mark.parametrize(
    "settings",
    [
        {"ldap_url": "http://ldap.example.org"},
        {"ldap_url": "ldaps://user:password@ldap.example.org"},
        {"ldap_bind_dn": "cn=reader"},
        {"ldap_bind_password": "secret"},
        {"ldap_subject_issuer": "oidc"},
        {"ldap_subject_issuer": "mail"},
        {"ldap_subject": "uid)(cn=*"},
    ],
)
def test_settings_that_would_be_unsafe_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="ldap_"):
        Settings(**settings)  # type: ignore[arg-type]

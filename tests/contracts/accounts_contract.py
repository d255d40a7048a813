"""What every store of people must do. Subclass `AccountsContract`, give it `accounts` and `catalog`."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import (
    SCOPES,
    AccountChange,
    AuditEntry,
    Grant,
    Group,
    Invitation,
    Key,
    Principal,
    Role,
    Session,
    User,
)
from conspectus.model.identities import (
    DIRECTORY_ISSUER,
    DirectoryMembership,
    GroupClaim,
    Identity,
    RefusedSignIn,
)
from conspectus.model.ids import LOCAL, CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.model.provisioning import ProvisionedGroup, ProvisionedUser
from conspectus.model.records import Collection, Receipt, Source
from conspectus.model.viewers import EVERYONE, RemotePerson
from conspectus.ports.accounts import Accounts
from tests.support.samples import NOON, notes, shelf

ANNA, BEN, TEAM = UserId("anna-id"), UserId("ben-id"), GroupId("team-id")
WIKI, DIARY = CollectionId("wiki-id"), CollectionId("diary-id")
PAGES, DRAFTS = SourceId("pages-id"), SourceId("drafts-id")
MINUTE = timedelta(minutes=1)


def groups_of(names: set[str], members: Mapping[str, set[str]]) -> set[str]:
    """The names with those of all groups that have one of them as a member, however far."""
    while True:
        wider = names | {group for group, inner in members.items() if inner & names}
        if wider == names:
            return names
        names = wider


async def mirrors(catalog: "Catalog", collection: CollectionId) -> bool:
    """Whether a collection is marked as one with mirrored sources."""
    stored = await catalog.collection(collection)
    return stored is not None and stored.mirrors


class Catalog(Protocol):
    """As much of the records as people and grants refer to."""

    async def create_collection(self, collection: Collection) -> Collection:
        """Store it."""
        ...

    async def put_source(self, source: Source) -> Source:
        """Store it."""
        ...

    async def collection(self, name: str) -> Collection | None:
        """The collection of that name or id."""
        ...

    async def delete_collection(self, collection: CollectionId) -> Receipt:
        """Delete it."""
        ...

    async def delete_source(self, source: SourceId) -> Receipt:
        """Delete it."""
        ...


def a_user(name: str) -> User:
    """A user whose id is its name with `-id`."""
    return User(UserId(f"{name}-id"), name, NOON)


def a_key(name: str, user: UserId = ANNA) -> Key:
    """A key that does not expire."""
    return Key(KeyId(name), user, f"the {name}", SCOPES, NOON, origin="web")


def to(user: UserId, role: Role, *, source: SourceId | None = None) -> Grant:
    """A role on the wiki."""
    return Grant(WIKI, source, Principal("user", user), role, NOON)


def looked(number: int, at: datetime) -> AuditEntry:
    """Anna asked as Ben."""
    return AuditEntry(f"entry {number}", ANNA, BEN, WIKI, "who's \U0001f389?", at)


def a_session(id: str, user: str) -> Session:
    """A session of a user of that name, without a key."""
    return Session(id, UserId(f"{user}-id"), ("read", "write"), NOON, NOON + 9 * MINUTE, NOON)


def an_invitation(id: str, user: str) -> Invitation:
    """An invitation of a user of that name."""
    return Invitation(id, UserId(f"{user}-id"), ("read",), NOON, NOON + 9 * MINUTE)


def an_identity(id: str, user: str) -> Identity:
    """An identity of a user of that name."""
    return Identity(id, "https://login.example.org", f"subject-{id}", UserId(f"{user}-id"), NOON)


async def list_actions(accounts: Accounts) -> list[str]:
    """The actions of the audit log, newest first."""
    return [entry.action for entry in (await accounts.audit(limit=99)).entries]


def a_change(action: str, number: int = 0) -> AccountChange:
    """A change of Carl by Anna."""
    who = (ANNA, "anna", KeyId("annas"))
    return AccountChange(f"{action}-id-{number}", *who, action, "carl-id", "carl", None, "scopes read", NOON)


class AccountsContract:
    """The behaviour of every store of people. Fixtures to override: `accounts` and `catalog`, empty."""

    @pytest.fixture
    async def peopled(self, accounts: Accounts, catalog: Catalog) -> None:
        """Anna, who owns a wiki with pages and a diary, Ben, and a team without members."""
        for name in ("ben", "anna"):
            await accounts.add_user(a_user(name))
        await accounts.add_group(Group(TEAM, "team", NOON))
        for number, name in ((WIKI, "anna/wiki"), (DIARY, "anna/diary")):
            await catalog.create_collection(replace(shelf(name), id=number, owner=ANNA))
        await catalog.put_source(notes(PAGES, WIKI))

    async def test_users_are_found_by_id_and_by_name(self, accounts: Accounts, peopled: None) -> None:
        """A name that looks like another's id does not hide the other."""
        await accounts.add_user(User(UserId("third"), ANNA, NOON))
        assert await accounts.user(ANNA) == a_user("anna") == await accounts.user("anna")
        assert [user.name for user in await accounts.users()] == ["anna", ANNA, "ben"]
        assert await accounts.user("nobody") is None

    async def test_a_name_is_one_users_only(self, accounts: Accounts, peopled: None) -> None:
        """Of users and of groups, each by themselves."""
        with pytest.raises(Conflict):
            await accounts.add_user(User(UserId("other"), "anna", NOON))
        with pytest.raises(Conflict):
            await accounts.add_group(Group(GroupId("other"), "team", NOON))
        await accounts.add_group(Group(GroupId("other"), "anna", NOON))
        assert [group.name for group in await accounts.groups()] == ["anna", "team"]

    async def test_what_is_unknown_is_an_error(self, accounts: Accounts, peopled: None) -> None:
        """Nothing is done to or for what does not exist."""
        nobody, nothing = UserId("nobody"), GroupId("nothing")
        for attempt in (
            accounts.set_user_disabled(nobody, disabled=True),
            accounts.delete_user(nobody),
            accounts.delete_user(ANNA, transfer_to=nobody),
            accounts.delete_group(nothing),
            accounts.members(nothing),
            accounts.join(nothing, ANNA),
            accounts.join(TEAM, nobody),
            accounts.add_key(a_key("door", nobody), "hash"),
            accounts.revoke_key(KeyId("lost"), NOON),
            accounts.put_grant(to(nobody, "viewer")),
            accounts.put_grant(replace(to(BEN, "viewer"), collection=CollectionId("gone"))),
            accounts.put_grant(to(BEN, "viewer", source=SourceId("gone"))),
            accounts.put_grant(replace(to(BEN, "viewer"), grantee=Principal("group", BEN))),
        ):
            with pytest.raises(NotFound):
                await attempt
        assert await accounts.user(ANNA) == a_user("anna")
        assert await accounts.key(KeyId("lost")) is None
        await accounts.note_key_use(KeyId("lost"), NOON)
        await accounts.leave(nothing, nobody)

    async def test_a_user_is_disabled_and_let_in_again(self, accounts: Accounts, peopled: None) -> None:
        """A disabled user keeps keys and grants; a key says that its user is disabled."""
        await accounts.add_key(a_key("door"), "hash")
        await accounts.put_grant(to(ANNA, "viewer"))
        assert (await accounts.set_user_disabled(ANNA, disabled=True)).disabled
        stored = await accounts.key(KeyId("door"))
        assert stored is not None
        assert stored[2].disabled
        assert await accounts.grants_of(ANNA) == [to(ANNA, "viewer")]
        assert await accounts.set_user_disabled(ANNA, disabled=False) == a_user("anna")

    async def test_people_know_those_with_whom_they_share_a_role_or_a_group(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """A role on one source is no role on another; one on the collection, or owning it, is one on all."""
        for name in ("carl", "dora"):
            await accounts.add_user(a_user(name))
        await accounts.add_user(replace(a_user("owner"), owner=True))
        await catalog.put_source(notes(DRAFTS, WIKI))
        carl, dora = UserId("carl-id"), UserId("dora-id")

        async def names_known_to(user: UserId) -> str:
            acquaintances = await accounts.list_acquaintances(user)
            users = [user.name for user in acquaintances.users]
            return " ".join([*users, *(group.name for group in acquaintances.groups)])

        assert await names_known_to(BEN) == "ben owner"
        await accounts.put_grant(to(BEN, "viewer", source=PAGES))
        await accounts.put_grant(to(carl, "manager", source=DRAFTS))
        assert await names_known_to(BEN) == "anna ben owner"
        assert await names_known_to(ANNA) == "anna ben carl owner"
        await accounts.put_grant(to(carl, "viewer"))
        assert await names_known_to(BEN) == "anna ben carl owner"
        await accounts.join(TEAM, dora)
        await accounts.put_grant(replace(to(BEN, "viewer"), grantee=Principal("group", TEAM)))
        assert await names_known_to(BEN) == "anna ben carl dora owner team" == await names_known_to(dora)
        await accounts.revoke(WIKI, None, Principal("group", TEAM))
        assert await names_known_to(dora) == "dora owner team"
        await accounts.join(TEAM, BEN)
        assert await names_known_to(dora) == "ben dora owner team"
        assert await names_known_to(ANNA) == "anna ben carl owner"

    async def test_groups_have_members(self, accounts: Accounts, peopled: None) -> None:
        """Joining twice is joining once, and leaving twice is leaving once."""
        for user in (BEN, ANNA, BEN):
            await accounts.join(TEAM, user)
        assert [member.name for member in await accounts.members(TEAM)] == ["anna", "ben"]
        for _ in range(2):
            await accounts.leave(TEAM, BEN)
        assert [member.name for member in await accounts.members(TEAM)] == ["anna"]

    async def test_keys_come_back_as_they_were_given(self, accounts: Accounts, peopled: None) -> None:
        """With everything that is known of them, oldest first."""
        late = replace(a_key("late"), created=NOON + MINUTE, expires=NOON + 2 * MINUTE, scopes=("read",))
        for key in (late, a_key("b"), a_key("a"), a_key("bens", BEN)):
            await accounts.add_key(key, f"hash of {key.id}")
        assert await accounts.keys(ANNA) == [a_key("a"), a_key("b"), late]
        assert len(await accounts.keys()) == 4
        assert await accounts.key(KeyId("late")) == (late, "hash of late", a_user("anna"))

    async def test_a_key_is_used_and_revoked(self, accounts: Accounts, peopled: None) -> None:
        """The time of the first revocation stays."""
        await accounts.add_key(a_key("door"), "hash")
        await accounts.note_key_use(KeyId("door"), NOON)
        await accounts.note_key_use(KeyId("door"), NOON + MINUTE)
        assert (await accounts.key(KeyId("door")) or ())[1:2] == ("hash",)
        revoked = replace(a_key("door"), last_used=NOON + MINUTE, revoked=NOON + 2 * MINUTE)
        assert await accounts.revoke_key(KeyId("door"), NOON + 2 * MINUTE) == revoked
        assert await accounts.revoke_key(KeyId("door"), NOON + 3 * MINUTE) == revoked
        assert await accounts.keys(ANNA) == [revoked]

    async def test_a_new_role_replaces_the_old(self, accounts: Accounts, peopled: None) -> None:
        """For one grantee in one place; a source of the collection is another place."""
        part = to(BEN, "manager", source=PAGES)
        for grant in (to(BEN, "owner"), part, to(BEN, "viewer")):
            await accounts.put_grant(grant)
        assert set(await accounts.grants(WIKI)) == {part, to(BEN, "viewer")}
        assert set(await accounts.grants_of(BEN)) == {part, to(BEN, "viewer")}
        assert await accounts.grants(DIARY) == []

    async def test_a_source_of_another_collection_is_not_found(
        self, accounts: Accounts, peopled: None
    ) -> None:
        """A grant that names both would otherwise open one by the other."""
        with pytest.raises(NotFound):
            await accounts.put_grant(replace(to(BEN, "viewer", source=PAGES), collection=DIARY))

    async def test_a_role_is_taken_once(self, accounts: Accounts, peopled: None) -> None:
        """And only where it was given."""
        await accounts.put_grant(to(BEN, "viewer"))
        ben = Principal("user", BEN)
        assert not await accounts.revoke(WIKI, PAGES, ben)
        assert not await accounts.revoke(DIARY, None, ben)
        assert not await accounts.revoke(WIKI, None, Principal("group", BEN))
        assert await accounts.revoke(WIKI, None, ben)
        assert not await accounts.revoke(WIKI, None, ben)
        assert await accounts.grants_of(BEN) == []

    async def test_roles_are_held_through_groups(self, accounts: Accounts, peopled: None) -> None:
        """As long as one is a member, and as long as there is the group."""
        grant = replace(to(BEN, "viewer"), grantee=Principal("group", TEAM))
        await accounts.put_grant(grant)
        assert await accounts.grants_of(BEN) == []
        await accounts.join(TEAM, BEN)
        assert await accounts.grants_of(BEN) == [grant]
        await accounts.leave(TEAM, BEN)
        assert await accounts.grants_of(BEN) == []
        await accounts.join(TEAM, BEN)
        await accounts.delete_group(TEAM)
        assert not [*await accounts.grants_of(BEN), *await accounts.grants(WIKI), *await accounts.groups()]

    async def test_sources_are_hidden_from_an_instant_on(self, accounts: Accounts, peopled: None) -> None:
        """And shown again; a source that does not exist changes nothing."""
        assert await accounts.list_hidden_sources(WIKI) == {}
        await accounts.hide_sources([PAGES, SourceId("missing")], since=NOON)
        assert await accounts.list_hidden_sources(WIKI) == {PAGES: NOON}
        assert await accounts.list_hidden_sources(DIARY) == {}
        await accounts.hide_sources([PAGES], since=NOON + MINUTE)
        assert await accounts.list_hidden_sources(WIKI) == {PAGES: NOON + MINUTE}
        await accounts.hide_sources([PAGES], since=None)
        assert await accounts.list_hidden_sources(WIKI) == {}

    async def test_mirrored_sources_are_read_by_viewers_alone(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """By name, through groups in groups, as everyone; nobody without a name at the remote."""
        await catalog.put_source(replace(notes("drafts", WIKI), id=DRAFTS))
        assert await accounts.list_unreadable_sources(WIKI, BEN) == {}
        assert not await mirrors(catalog, WIKI)
        await accounts.mirror_source(PAGES, "mail", ["group:all", "ann"])
        assert await mirrors(catalog, WIKI) and not await mirrors(catalog, DIARY)
        await accounts.mirror_source(DRAFTS, "mail", [])
        assert await accounts.list_mirrored_sources("mail") == {
            PAGES: frozenset({"group:all", "ann"}),
            DRAFTS: frozenset(),
        }
        assert await accounts.list_mirrored_sources("other") == {}
        both = {PAGES: "mail", DRAFTS: "mail"}
        assert await accounts.list_unreadable_sources(WIKI, BEN) == both
        assert await accounts.list_unreadable_sources(DIARY, BEN) == {}
        await accounts.map_remote_person("mail", RemotePerson("ben", BEN), created=NOON)
        await accounts.map_remote_person("other", RemotePerson("ann", BEN), created=NOON)
        assert await accounts.list_unreadable_sources(WIKI, BEN) == both
        members = {"group:all": ["group:some"], "group:some": ["group:all", "ben", "cy"]}
        await accounts.put_remote_members("mail", members)
        assert await accounts.list_unreadable_sources(WIKI, BEN) == {DRAFTS: "mail"}
        assert await accounts.list_unreadable_sources(WIKI, ANNA) == both
        await accounts.put_remote_members("mail", {"group:some": ["cy"]})
        assert await accounts.list_unreadable_sources(WIKI, BEN) == both
        await accounts.mirror_source(DRAFTS, "mail", [EVERYONE])
        assert await accounts.list_unreadable_sources(WIKI, BEN) == {PAGES: "mail"}
        assert await accounts.list_unreadable_sources(WIKI, ANNA) == both
        await accounts.forget_remote("mail")
        assert await accounts.list_unreadable_sources(WIKI, BEN) == both
        with pytest.raises(NotFound):
            await accounts.mirror_source(SourceId("missing"), "mail", [])

    async def test_each_change_of_who_reads_mirrored_sources_has_a_version(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """What was read at a version is true until there is another one; 0 says that nothing is mirrored."""
        assert await accounts.viewers_version(WIKI) == 0
        drafts = replace(notes("drafts", WIKI), id=DRAFTS)
        changes: list[Callable[[], Awaitable[object]]] = [
            partial(accounts.mirror_source, PAGES, "mail", ["group:all"]),
            partial(accounts.mirror_source, PAGES, "mail", ["group:all", "ann"]),
            partial(accounts.put_remote_members, "mail", {"group:all": ["ben"]}),
            partial(accounts.put_remote_members, "mail", {}, groups={"group:others"}),
            partial(accounts.map_remote_person, "mail", RemotePerson("ben", BEN), created=NOON),
            partial(accounts.map_remote_person, "mail", RemotePerson("ben"), created=NOON),
            partial(catalog.put_source, drafts),
            partial(accounts.hide_sources, [DRAFTS], since=NOON),
            partial(accounts.mirror_source, DRAFTS, "mail", ["ann"]),
            partial(accounts.put_remote_members, "mail", {"group:all": ["ann"]}),
            partial(accounts.forget_remote, "mail"),
            partial(catalog.delete_source, DRAFTS),
        ]
        version = 0
        for change in changes:
            await change()
            former, version = version, await accounts.viewers_version(WIKI)
            assert version not in {0, former}
        assert await accounts.viewers_version(DIARY) == 0
        await catalog.delete_source(PAGES)
        assert await accounts.viewers_version(WIKI) == 0

    async def test_groups_that_a_whole_list_does_not_name_have_no_members(
        self, accounts: Accounts, peopled: None
    ) -> None:
        """A list that was cut off replaces the groups that it names, and no other."""
        await accounts.mirror_source(PAGES, "mail", ["a", "b"])
        await accounts.map_remote_person("mail", RemotePerson("ben", BEN), created=NOON)
        await accounts.put_remote_members("mail", {"a": ["ben"], "b": ["ben"]})
        await accounts.put_remote_members("other", {"a": ["ben"]})
        await accounts.put_remote_members("mail", {"a": []})
        assert await accounts.list_unreadable_sources(WIKI, BEN) == {}
        await accounts.put_remote_members("mail", {}, groups={"a", "c"})
        assert await accounts.list_unreadable_sources(WIKI, BEN) == {PAGES: "mail"}

    async def test_people_of_a_remote_are_listed_with_their_users(
        self, accounts: Accounts, peopled: None
    ) -> None:
        """Groups are no people, and neither is everyone."""
        await accounts.mirror_source(PAGES, "mail", ["group:all", "zoe", EVERYONE])
        await accounts.put_remote_members("mail", {"group:all": ["ben", "cy"]})
        await accounts.map_remote_person("mail", RemotePerson("ben", BEN), created=NOON)
        people = [RemotePerson("ben", BEN), RemotePerson("cy"), RemotePerson("zoe")]
        assert list(await accounts.list_remote_people("mail")) == people
        with pytest.raises(NotFound):
            await accounts.map_remote_person("mail", RemotePerson("cy", UserId("no")), created=NOON)
        await accounts.map_remote_person("mail", RemotePerson("cy", BEN), created=NOON)
        await accounts.map_remote_person("mail", RemotePerson("ben"), created=NOON)
        assert [person.user for person in await accounts.list_remote_people("mail")] == [None, BEN, None]
        await accounts.map_remote_person("mail", RemotePerson("ada", BEN), created=NOON)
        assert list(await accounts.list_remote_names("mail", BEN)) == ["ada", "cy"]
        assert list(await accounts.list_remote_names("other", BEN)) == []
        await accounts.map_remote_person("mail", RemotePerson("ada"), created=NOON)
        await accounts.delete_user(BEN)
        assert [person.user for person in await accounts.list_remote_people("mail")] == [None] * 3

    async def test_random_viewers_are_those_of_a_plain_search(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """Grants, revocations and group edits at the remote, in any order."""
        dice, names = random.Random(50), ["p", "q", "g1", "g2", "g3", EVERYONE]
        await catalog.put_source(replace(notes("drafts", WIKI), id=DRAFTS))
        viewers: dict[SourceId, set[str]] = {}
        members: dict[str, set[str]] = {}
        users = {"p": ANNA, "q": BEN}
        for name, user in users.items():
            await accounts.map_remote_person("mail", RemotePerson(name, user), created=NOON)
        for _ in range(40):
            some = {name for name in names if dice.random() < 0.3}
            if dice.random() < 0.5:
                source = dice.choice([PAGES, DRAFTS])
                viewers[source] = some
                await accounts.mirror_source(source, "mail", sorted(some))
            else:
                group = dice.choice(["g1", "g2", "g3"])
                members[group] = some
                await accounts.put_remote_members("mail", {group: sorted(some)})
            for name, user in users.items():
                unreadable = await accounts.list_unreadable_sources(WIKI, user)
                person_names = groups_of({name, EVERYONE}, members)
                assert unreadable.keys() == {
                    source for source in viewers if not viewers[source] & person_names
                }

    async def test_what_is_deleted_takes_its_grants_along(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """First a source, then the collection."""
        for grant in (to(BEN, "viewer", source=PAGES), to(BEN, "viewer")):
            await accounts.put_grant(grant)
        await catalog.delete_source(PAGES)
        assert await accounts.grants_of(BEN) == [to(BEN, "viewer")]
        await catalog.delete_collection(WIKI)
        assert await accounts.grants_of(BEN) == []

    async def test_a_user_is_deleted_with_all_it_may_do(self, accounts: Accounts, peopled: None) -> None:
        """One of the same name later has nothing of it."""
        await accounts.add_key(a_key("bens", BEN), "hash")
        await accounts.join(TEAM, BEN)
        await accounts.put_grant(to(BEN, "owner"))
        await accounts.delete_user(BEN)
        assert await accounts.key(KeyId("bens")) is None
        assert not [*await accounts.keys(), *await accounts.members(TEAM), *await accounts.grants(WIKI)]
        await accounts.add_user(User(UserId("new"), "ben", NOON))
        assert await accounts.grants_of(UserId("new")) == []

    async def test_a_grant_tells_who_granted_it(self, accounts: Accounts, peopled: None) -> None:
        """By the change of the same instant; a grant without one, or a later change, tells nobody."""
        noted, later, unnoted = to(BEN, "viewer"), to(BEN, "editor", source=PAGES), to(ANNA, "viewer")
        change = a_change("put_grant")
        stated = replace(change, subject=BEN, subject_name="ben", collection=WIKI, detail="user viewer")
        await accounts.put_grant(noted, stated)
        detail = f"user editor source {PAGES}"
        await accounts.put_grant(later, replace(stated, id="2", detail=detail, created=NOON + MINUTE))
        await accounts.put_grant(unnoted)
        by_role = {(grant.grantee.id, grant.role): grant for grant in await accounts.grants(WIKI)}
        assert by_role[BEN, "viewer"] == replace(
            noted, granted_by=change.actor, granted_by_name=change.actor_name
        )
        assert [by_role[BEN, "editor"], by_role[ANNA, "viewer"]] == [later, unnoted]

    async def test_the_audit_log_is_read_page_by_page(self, accounts: Accounts, peopled: None) -> None:
        """Newest first, and by id where two were noted at the same time."""
        noted = [looked(number, NOON + number // 2 * MINUTE) for number in range(5)]
        for entry in noted:
            await accounts.add_audit(entry)
        first = await accounts.audit(limit=2)
        rest = await accounts.audit(after=first.next, limit=5)
        assert [*first.entries, *rest.entries] == noted[::-1]
        assert (first.next is None, rest.next) == (False, None)
        with pytest.raises(InvalidInput):
            await accounts.audit(after="nonsense", limit=1)
        with pytest.raises(NotFound):
            await accounts.add_audit(replace(noted[0], id="x", collection=CollectionId("gone")))

    async def test_the_audit_log_goes_with_what_it_is_about(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """The one who asked, the one who was asked as, and the collection."""
        await accounts.add_user(a_user("carl"))
        carl = UserId("carl-id")
        remaining, by, of = (replace(looked(number, NOON), collection=DIARY) for number in range(3))
        for entry in (remaining, replace(by, actor=carl), replace(of, viewed_as=carl), looked(3, NOON)):
            await accounts.add_audit(entry)
        await accounts.delete_user(carl)
        assert (await accounts.audit(limit=9)).entries == (looked(3, NOON), remaining)
        await catalog.delete_collection(WIKI)
        assert (await accounts.audit(limit=9)).entries == (remaining,)

    async def test_a_write_is_noted_with_its_change(self, accounts: Accounts, peopled: None) -> None:
        """Where it fails or changes nothing, nothing is noted."""
        await accounts.add_user(a_user("carl"), a_change("create_user"))
        with pytest.raises(Conflict):
            await accounts.add_user(a_user("carl"), a_change("again"))
        await accounts.leave(TEAM, UserId("carl-id"), a_change("no member"))
        assert not await accounts.revoke(WIKI, None, Principal("user", "carl-id"), a_change("no grant"))
        await accounts.delete_user(UserId("carl-id"), change=a_change("delete_user"))
        await accounts.add_change(a_change("set_retention"))
        entries = (await accounts.audit(limit=9)).entries
        assert {entry.action for entry in entries} == {"create_user", "delete_user", "set_retention"}
        (created,) = [entry for entry in entries if entry.action == "create_user"]
        about = (created.actor, created.actor_name, created.subject, created.subject_name, created.detail)
        assert about == (ANNA, "anna", "carl-id", "carl", "scopes read")
        assert (created.key, created.collection, created.query) == (KeyId("annas"), None, "")

    async def test_changes_keep_no_name_of_a_purged_user(self, accounts: Accounts, peopled: None) -> None:
        await accounts.add_user(a_user("carl"), a_change("create_user"))
        await accounts.delete_user(UserId("carl-id"), change=a_change("delete_user"), purge=True)
        assert {entry.subject_name for entry in (await accounts.audit(limit=9)).entries} == {""}

    async def test_a_session_is_stored_until_it_or_its_key_ends(
        self, accounts: Accounts, peopled: None
    ) -> None:
        carl = a_user("carl")
        await accounts.add_user(carl)
        key = Key(KeyId("carls"), carl.id, "", ("read",), NOON)
        await accounts.add_key(key, "x" * 64)
        session = replace(a_session("one", "carl"), key=key.id, origin="tool", expires=NOON + MINUTE)
        await accounts.add_session(session, "h" * 64)
        assert await accounts.session("one") == (session, "h" * 64, carl)
        await accounts.session_used("one", NOON + MINUTE / 2)
        stored = await accounts.session("one")
        assert stored is not None and stored[0].last_used == NOON + MINUTE / 2
        await accounts.add_session(replace(session, id="two", created=NOON + MINUTE), "h" * 64)
        assert await accounts.session("one") is None
        await accounts.end_session("two")
        await accounts.end_session("two")
        assert await accounts.session("two") is None
        await accounts.add_session(replace(session, id="three"), "h" * 64)
        await accounts.add_session(replace(session, id="four", key=None), "h" * 64)
        await accounts.delete_user(carl.id)
        assert await accounts.session("three") is await accounts.session("four") is None

    async def test_a_session_knows_whether_its_user_is_disabled(
        self, accounts: Accounts, peopled: None
    ) -> None:
        await accounts.set_user_disabled(ANNA, disabled=True)
        await accounts.add_session(a_session("one", "anna"), "h" * 64)
        stored = await accounts.session("one")
        assert stored is not None and stored[2].disabled

    async def test_nobody_who_does_not_exist_has_sessions_or_invitations(
        self, accounts: Accounts, peopled: None
    ) -> None:
        with pytest.raises(NotFound):
            await accounts.add_session(a_session("one", "nobody"), "h" * 64)
        with pytest.raises(NotFound):
            await accounts.add_invitation(an_invitation("one", "nobody"), "h" * 64)
        assert await accounts.sessions() == []
        assert await accounts.invitations() == []

    async def test_sessions_are_listed_newest_first_and_their_end_is_noted(
        self, accounts: Accounts, peopled: None
    ) -> None:
        for name in ("carl", "dora"):
            await accounts.add_user(a_user(name))
        for number, name in enumerate(("carl", "dora", "carl")):
            session = replace(a_session(f"s{number}", name), created=NOON + number * MINUTE)
            await accounts.add_session(session, "h" * 64)
        assert [session.id for session in await accounts.sessions()] == ["s2", "s1", "s0"]
        assert [session.id for session in await accounts.sessions(UserId("carl-id"))] == ["s2", "s0"]
        for session_id in ("s0", "s0", "unknown"):
            await accounts.end_session(session_id, a_change("end_session"))
        assert [session.id for session in await accounts.sessions(UserId("carl-id"))] == ["s2"]
        assert await list_actions(accounts) == ["end_session"]

    async def test_an_invitation_is_stored_until_it_is_withdrawn_or_has_expired(
        self, accounts: Accounts, peopled: None
    ) -> None:
        await accounts.add_user(a_user("carl"))
        invitations = [
            replace(an_invitation(f"i{number}", name), created=NOON + number * MINUTE)
            for number, name in enumerate(("carl", "anna", "carl"))
        ]
        for number, invitation in enumerate(invitations):
            await accounts.add_invitation(invitation, "h" * 64, a_change("create_invitation", number))
        assert await accounts.invitation("i0") == (invitations[0], "h" * 64)
        assert await accounts.invitations() == invitations[::-1]
        assert await accounts.invitations(UserId("carl-id")) == [invitations[2], invitations[0]]
        await accounts.withdraw_invitation("i0", a_change("withdraw_invitation"))
        with pytest.raises(NotFound):
            await accounts.withdraw_invitation("i0", a_change("withdraw_invitation"))
        assert await accounts.invitation("i0") is None
        late = replace(an_invitation("late", "carl"), created=invitations[1].expires)
        await accounts.add_invitation(late, "h" * 64)
        assert await accounts.invitations() == [late]
        await accounts.delete_user(UserId("carl-id"))
        assert await accounts.invitation("late") is None
        assert sorted(await list_actions(accounts)) == [*["create_invitation"] * 3, "withdraw_invitation"]

    async def test_an_invitation_is_accepted_once_however_many_try(
        self, accounts: Accounts, peopled: None
    ) -> None:
        await accounts.add_invitation(an_invitation("one", "anna"), "h" * 64)
        acceptances = [
            accounts.accept_invitation(
                "one", a_session(f"s{number}", "anna"), "s" * 64, a_change("accept_invitation", number)
            )
            for number in range(8)
        ]
        outcomes = await asyncio.gather(*acceptances, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [NotFound] * 7
        assert len(await accounts.sessions()) == 1
        assert await accounts.invitations() == []
        assert await list_actions(accounts) == ["accept_invitation"]

    async def test_an_identity_is_one_users_and_a_user_has_one_of_an_issuer(
        self, accounts: Accounts, peopled: None
    ) -> None:
        await accounts.add_identity(an_identity("one", "anna"), a_change("map_identity"))
        with pytest.raises(Conflict):
            await accounts.add_identity(an_identity("one", "ben"))
        with pytest.raises(Conflict):
            await accounts.add_identity(an_identity("two", "anna"))
        with pytest.raises(NotFound):
            await accounts.add_identity(an_identity("two", "nobody"))
        elsewhere = replace(an_identity("two", "anna"), issuer="https://other.example.org")
        await accounts.add_identity(elsewhere)
        assert await accounts.identities(ANNA) == [an_identity("one", "anna"), elsewhere]
        signed_in = await accounts.find_sign_in("one")
        assert signed_in is not None
        assert (signed_in.identity, signed_in.user.id) == (an_identity("one", "anna"), ANNA)
        assert await accounts.find_sign_in("unknown") is None
        of_identity = replace(a_session("s1", "anna"), identity="two", issuer_session="sid")
        await accounts.add_session(of_identity, "h" * 64)
        await accounts.add_session(replace(of_identity, id="s2", identity="one"), "h" * 64)
        assert of_identity in await accounts.sessions(ANNA)
        await accounts.remove_identity(elsewhere, a_change("unmap_identity"))
        assert [session.id for session in await accounts.sessions(ANNA)] == ["s2"]
        with pytest.raises(NotFound):
            await accounts.remove_identity(elsewhere, a_change("unmap_identity"))
        await accounts.delete_user(ANNA, transfer_to=BEN)
        assert await accounts.identities() == []
        assert sorted(await list_actions(accounts)) == ["map_identity", "unmap_identity"]

    async def test_of_many_first_sign_ins_one_makes_the_user(self, accounts: Accounts, peopled: None) -> None:
        sign_ins = []
        for number in range(8):
            user = User(UserId(f"new-{number}"), "carl", NOON)
            identity = replace(an_identity("one", "carl"), user=user.id)
            change = a_change("create_user", number)
            sign_ins.append(accounts.add_identity(identity, change, new_user=user))
        outcomes = await asyncio.gather(*sign_ins, return_exceptions=True)
        assert sorted(str(type(outcome).__name__) for outcome in outcomes) == ["Conflict"] * 7 + ["NoneType"]
        assert [user.name for user in await accounts.users()] == ["anna", "ben", "carl"]
        assert await list_actions(accounts) == ["create_user"]

    async def test_a_sign_in_joins_and_leaves_groups_unless_a_newer_one_has(
        self, accounts: Accounts, peopled: None
    ) -> None:
        await accounts.add_group(Group(GroupId("club"), "club", NOON))
        await accounts.join(GroupId("club"), ANNA)
        identity = an_identity("one", "anna")
        await accounts.add_identity(identity)
        club, team, gone = GroupId("club"), TEAM, GroupId("gone")
        first = a_change("first_sign_in")

        async def sign_in(
            minute: int, *, joined: Sequence[GroupId] = (), left: Sequence[GroupId] = ()
        ) -> None:
            await accounts.note_sign_in(
                identity,
                NOON + minute * MINUTE,
                first=replace(first, id=f"first-{minute}-{joined}"),
                joined={group: a_change("add_member", minute) for group in joined},
                left={group: a_change("remove_member", minute) for group in left},
            )

        async def memberships() -> Mapping[GroupId, str | None]:
            signed_in = await accounts.find_sign_in("one")
            assert signed_in is not None
            return signed_in.memberships

        await sign_in(1, joined=[team, club, gone])
        assert await memberships() == {club: None, team: identity.issuer}
        await sign_in(1, joined=[team, club])
        await sign_in(3, left=[team, club])
        assert await memberships() == {club: None}
        await sign_in(2, joined=[team])
        assert await memberships() == {club: None}
        await sign_in(4, joined=[team])
        await accounts.join(team, ANNA)
        await sign_in(5, left=[team])
        assert await memberships() == {club: None, team: None}
        expected = ["add_member", "add_member", "first_sign_in", "remove_member"]
        assert sorted(await list_actions(accounts)) == expected
        stored = await accounts.identities(ANNA)
        assert [identity.last_issued for identity in stored] == [NOON + 5 * MINUTE]

    async def test_a_directory_changes_its_memberships_and_no_others(
        self, accounts: Accounts, peopled: None
    ) -> None:
        identity = replace(an_identity("one", "anna"), issuer=DIRECTORY_ISSUER)
        await accounts.add_identity(identity)
        anna = DirectoryMembership(TEAM, ANNA, identity.id)
        joined, left = {anna: a_change("add_member")}, {anna: a_change("remove_member", 1)}
        unmapped = {replace(anna, user=BEN, identity="gone"): a_change("add_member", 2)}
        await accounts.change_directory_members(DIRECTORY_ISSUER, joined=joined, left={})
        assert await accounts.members(TEAM) == []
        claim = GroupClaim("c1", DIRECTORY_ISSUER, "cn=team", TEAM, NOON)
        await accounts.add_group_claim(claim)
        for _ in range(2):
            await accounts.change_directory_members(DIRECTORY_ISSUER, joined=joined | unmapped, left={})
        assert await accounts.list_directory_members(DIRECTORY_ISSUER) == [(TEAM, ANNA)]
        assert await accounts.list_directory_members("other") == []
        await accounts.change_directory_members("other", joined={}, left=left)
        assert await list_actions(accounts) == ["add_member"]
        await accounts.change_directory_members(DIRECTORY_ISSUER, joined={}, left=left)
        assert await accounts.members(TEAM) == []
        await accounts.join(TEAM, ANNA)
        await accounts.change_directory_members(DIRECTORY_ISSUER, joined=joined, left=left)
        assert [user.id for user in await accounts.members(TEAM)] == [ANNA]
        assert sorted(await list_actions(accounts)) == ["add_member", "remove_member"]

    async def test_memberships_by_a_directory_end_with_the_last_identity(
        self, accounts: Accounts, peopled: None
    ) -> None:
        identity = an_identity("one", "anna")
        await accounts.add_identity(identity)
        await accounts.add_group_claim(GroupClaim("c1", DIRECTORY_ISSUER, "cn=team", TEAM, NOON))
        joined = {DirectoryMembership(TEAM, ANNA, identity.id): a_change("add_member")}
        await accounts.change_directory_members(DIRECTORY_ISSUER, joined=joined, left={})
        await accounts.remove_identity(identity)
        assert await accounts.members(TEAM) == []

    async def test_refused_subjects_are_listed_until_they_are_mapped(
        self, accounts: Accounts, peopled: None
    ) -> None:
        identity = an_identity("one", "anna")
        first = RefusedSignIn("one", identity.issuer, identity.subject, NOON, NOON)
        other = RefusedSignIn("two", identity.issuer, "other", NOON + MINUTE, NOON + MINUTE)
        for refused in (first, other, replace(first, first=NOON + 2 * MINUTE, last=NOON + 2 * MINUTE)):
            await accounts.note_refused_sign_in(refused)
        assert await accounts.list_refused_sign_ins() == [replace(first, last=NOON + 2 * MINUTE), other]
        await accounts.add_identity(identity)
        assert await accounts.list_refused_sign_ins() == [other]
        late = NOON + timedelta(days=31)
        await accounts.note_refused_sign_in(replace(other, id="three", first=late, last=late))
        assert [refused.id for refused in await accounts.list_refused_sign_ins()] == ["three"]

    async def test_who_mapped_an_identity_is_listed_with_it(self, accounts: Accounts, peopled: None) -> None:
        change = replace(a_change("map_identity"), subject=ANNA)
        mapped = replace(an_identity("one", "anna"), created=change.created)
        await accounts.add_identity(mapped, change)
        [listed] = await accounts.identities()
        assert listed == replace(mapped, mapped_by=change.actor, mapped_by_name=listed.mapped_by_name)

    async def test_sessions_are_found_by_identity_and_by_session_of_their_issuer(
        self, accounts: Accounts, peopled: None
    ) -> None:
        issuer = an_identity("one", "anna").issuer
        await accounts.add_identity(an_identity("one", "anna"))
        await accounts.add_identity(replace(an_identity("two", "ben"), issuer="https://other.example.org"))
        for name, user, identity, issuer_session in (
            ("s1", "anna", "one", "sid"),
            ("s2", "anna", "one", None),
            ("s3", "ben", "two", "sid"),
            ("s4", "anna", None, None),
        ):
            session = replace(a_session(name, user), identity=identity, issuer_session=issuer_session)
            await accounts.add_session(session, "h" * 64)

        async def find(identity: str | None, issuer_session: str | None) -> list[tuple[str, str]]:
            sessions = await accounts.find_issuer_sessions(
                issuer, identity=identity, issuer_session=issuer_session
            )
            return sorted((session.id, user.id) for session, user in sessions)

        assert await find("one", None) == [("s1", ANNA), ("s2", ANNA)]
        assert await find(None, "sid") == [("s1", ANNA)]
        assert await find("two", None) == await find(None, "other") == []

    async def test_claims_of_groups_end_with_their_memberships(
        self, accounts: Accounts, peopled: None
    ) -> None:
        identity, issuer = an_identity("one", "anna"), an_identity("one", "anna").issuer
        claim = GroupClaim("c1", issuer, "staff", TEAM, NOON)
        foreign = GroupClaim("c0", "https://other.example.org", "admins", TEAM, NOON)
        for group_claim in (claim, foreign):
            await accounts.add_group_claim(group_claim, a_change("map_group", int(group_claim.id[1])))
        with pytest.raises(Conflict):
            await accounts.add_group_claim(claim)
        with pytest.raises(NotFound):
            await accounts.add_group_claim(replace(claim, id="c2", group=GroupId("gone")))
        assert await accounts.group_claims() == [foreign, claim]
        assert await accounts.group_claims(issuer) == [claim]
        await accounts.add_identity(identity)
        endings = (partial(accounts.remove_group_claim, claim), partial(accounts.remove_identity, identity))
        for number, end in enumerate(endings):
            joined = {TEAM: a_change("add_member", number)}
            first = a_change("first_sign_in", number)
            await accounts.note_sign_in(identity, NOON, first=first, joined=joined, left={})
            assert [user.id for user in await accounts.members(TEAM)] == [ANNA]
            await end()
            assert await accounts.members(TEAM) == []
        with pytest.raises(NotFound):
            await accounts.remove_group_claim(claim)
        await accounts.delete_group(TEAM)
        assert await accounts.group_claims() == []

    async def test_a_disabled_user_has_no_session_and_invitation_any_more(
        self, accounts: Accounts, peopled: None
    ) -> None:
        for user, number in (("anna", "1"), ("ben", "2")):
            await accounts.add_session(a_session(f"s{number}", user), "h" * 64)
            await accounts.add_invitation(an_invitation(f"i{number}", user), "h" * 64)
            await accounts.add_key(a_key(f"k{number}", UserId(f"{user}-id")), "h" * 64)
        await accounts.set_user_disabled(ANNA, disabled=True)
        assert [session.user for session in await accounts.sessions()] == [BEN]
        assert [invitation.user for invitation in await accounts.invitations()] == [BEN]
        assert [key.revoked for key in await accounts.keys()] == [None, None]
        await accounts.set_user_disabled(ANNA, disabled=True, revoke_keys=NOON + MINUTE)
        assert {key.user: key.revoked for key in await accounts.keys()} == {ANNA: NOON + MINUTE, BEN: None}
        assert not (await accounts.set_user_disabled(ANNA, disabled=False)).disabled
        assert await accounts.sessions(ANNA) == []

    async def test_a_provider_manages_users_under_names_of_its_own(
        self, accounts: Accounts, peopled: None
    ) -> None:
        carl = ProvisionedUser(a_user("carl"), "Carl@Example.org", "ext-1", NOON)
        ben = ProvisionedUser(a_user("ben"), "ben@example.org", None, NOON)
        identity = an_identity("one", "carl")
        await accounts.add_provisioned_user(carl, a_change("create_user"), identity=identity)
        await accounts.add_provisioned_user(ben, is_new=False)
        assert list(await accounts.provisioned_users()) == [ben, carl]
        assert [stored.id for stored in await accounts.identities()] == [identity.id]
        same_name = ProvisionedUser(a_user("dora"), "carl@example.ORG", None, NOON)
        for refused in (same_name, replace(carl, user_name="other"), replace(same_name, user=a_user("anna"))):
            with pytest.raises(Conflict):
                await accounts.add_provisioned_user(refused)
        with pytest.raises(Conflict):
            await accounts.put_provisioned_user(replace(ben, user_name="CARL@example.org"))
        renamed = replace(carl, user_name="Karl", external_id=None, modified=NOON + MINUTE)
        await accounts.put_provisioned_user(renamed)
        assert list(await accounts.provisioned_users()) == [ben, renamed]
        await accounts.remove_provisioned_user(carl.user.id, a_change("delete_user"))
        for ending in (accounts.remove_provisioned_user(carl.user.id), accounts.put_provisioned_user(carl)):
            with pytest.raises(NotFound):
                await ending
        assert list(await accounts.provisioned_users()) == [ben]
        assert [user.name for user in await accounts.users()] == ["anna", "ben", "carl"]
        await accounts.delete_user(BEN)
        assert list(await accounts.provisioned_users()) == []
        assert sorted(await list_actions(accounts)) == ["create_user", "delete_user"]

    async def test_a_provider_manages_memberships_of_its_users_alone(
        self, accounts: Accounts, peopled: None
    ) -> None:
        staff = ProvisionedGroup(Group(GroupId("staff-id"), "staff", NOON), "Staff", "ext-2", NOON)
        carl = ProvisionedUser(a_user("carl"), "carl", None, NOON)
        await accounts.add_provisioned_user(carl)
        await accounts.add_provisioned_group(staff, a_change("create_group"))
        with pytest.raises(Conflict):
            await accounts.add_provisioned_group(replace(staff, display_name="Staff 2"))
        await accounts.join(staff.group.id, ANNA)
        joined = {
            user: a_change("add_member", number)
            for number, user in enumerate((carl.user.id, ANNA, BEN, UserId("gone")))
        }
        for _ in range(2):
            await accounts.put_provisioned_group(staff, joined=joined, left={})
        assert [user.name for user in await accounts.members(staff.group.id)] == ["anna", "carl"]
        assert [group.members for group in await accounts.provisioned_groups()] == [(carl.user.id,)]
        assert [user.groups for user in await accounts.provisioned_users()] == [(staff.group.id,)]
        await accounts.join(TEAM, carl.user.id)
        await accounts.remove_provisioned_user(carl.user.id)
        assert [user.name for user in await accounts.members(staff.group.id)] == ["anna"]
        assert [user.name for user in await accounts.members(TEAM)] == ["carl"]
        renamed = replace(staff, display_name="All", modified=NOON + MINUTE)
        left = {ANNA: a_change("remove_member"), BEN: a_change("remove_member", 1)}
        await accounts.put_provisioned_group(renamed, a_change("rename_group"), joined={}, left=left)
        assert list(await accounts.provisioned_groups()) == [renamed]
        assert await accounts.members(staff.group.id) == []
        await accounts.delete_group(staff.group.id)
        with pytest.raises(NotFound):
            await accounts.put_provisioned_group(staff, joined={}, left={})
        expected = ["add_member", "create_group", "remove_member", "rename_group"]
        assert sorted(await list_actions(accounts)) == expected

    async def test_an_owner_is_deleted_only_with_an_heir(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """Its collections get the new owner's name, and their grants stay."""
        with pytest.raises(Conflict):
            await accounts.delete_user(ANNA)
        grant = replace(to(BEN, "viewer"), grantee=Principal("group", TEAM))
        await accounts.put_grant(grant)
        await accounts.delete_user(ANNA, transfer_to=BEN)
        wiki, diary = await catalog.collection("ben/wiki"), await catalog.collection("ben/diary")
        assert [collection and (collection.id, collection.owner) for collection in (wiki, diary)] == [
            (WIKI, BEN),
            (DIARY, BEN),
        ]
        assert await accounts.grants(WIKI) == [grant]

    async def test_the_owner_of_the_store_inherits_without_a_prefix(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """Unless the name would then begin with that of somebody else."""
        await accounts.add_user(User(LOCAL, "owner", NOON, owner=True))
        await catalog.create_collection(replace(shelf("anna/ben/x"), id=CollectionId("x"), owner=ANNA))
        with pytest.raises(Conflict):
            await accounts.delete_user(ANNA, transfer_to=LOCAL)
        await catalog.delete_collection(CollectionId("x"))
        await accounts.delete_user(ANNA, transfer_to=LOCAL)
        wiki = await catalog.collection("wiki")
        assert wiki is not None
        assert (wiki.id, wiki.owner) == (WIKI, LOCAL)

    async def test_an_inheritance_that_clashes_changes_nothing(
        self, accounts: Accounts, catalog: Catalog, peopled: None
    ) -> None:
        """Neither the user nor any of the collections."""
        await catalog.create_collection(replace(shelf("ben/wiki"), id=CollectionId("his"), owner=BEN))
        with pytest.raises(Conflict, match="wiki"):
            await accounts.delete_user(ANNA, transfer_to=BEN)
        for name in ("anna/wiki", "anna/diary"):
            inherited = await catalog.collection(name)
            assert inherited is not None
            assert inherited.owner == ANNA
        assert await accounts.user(ANNA) == a_user("anna")

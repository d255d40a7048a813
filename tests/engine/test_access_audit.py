"""Audited operations: every write about people, and changes of settings, leave a row without secrets."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import conspectus
from conspectus.engine import Engine
from conspectus.errors import PermissionDenied
from conspectus.model.access import SCOPES, AuditEntry, Principal
from conspectus.model.experiments import NewEvidence, NewQuestion
from conspectus.model.memory import Retention, Scope
from conspectus.model.records import NewDocument
from conspectus.operations.access import ACCESS_OPERATIONS
from conspectus.operations.identities import IDENTITY_OPERATIONS
from conspectus.operations.keys import KEY_OPERATIONS
from conspectus.operations.logins import LOGIN_OPERATIONS
from conspectus.operations.people import PEOPLE_OPERATIONS
from conspectus.operations.table import OPERATIONS
from conspectus.settings import Settings

AUDITED = {operation.name: operation for operation in OPERATIONS.values() if operation.audited}
ISSUER = "https://login.example.org"
BOB, LABEL, TEXT = Principal("user", "bob"), "label of a key", "words of a description"


@dataclass
class Audited:
    """A store, and its owner with a key."""

    engine: Engine
    owner: Engine
    key: str
    """A key of Bob."""
    session: str
    """A session of that key."""
    invitation: str
    """An invitation of Ann."""
    identity: str
    """An identity of Ann."""
    group_claim: str
    """A claim of the crew."""
    run: str
    """A run, whose options are the defaults of its collection."""
    folder: Path

    async def rows(self) -> list[AuditEntry]:
        return list((await self.engine.access.list_audit()).entries)


Work = Callable[[Audited], Awaitable[Any]]
WRITES: Mapping[str, Work] = {
    "create_user": lambda a: a.owner.people.create_user("carol"),
    "set_user_disabled": lambda a: a.owner.people.set_user_disabled("bob"),
    "delete_user": lambda a: a.owner.people.delete_user("bob"),
    "create_group": lambda a: a.owner.people.create_group("team"),
    "delete_group": lambda a: a.owner.people.delete_group("crew"),
    "add_member": lambda a: a.owner.people.add_member("crew", "ann"),
    "remove_member": lambda a: a.owner.people.remove_member("crew", "bob"),
    "create_key": lambda a: a.owner.keys.create("bob", label=LABEL),
    "revoke_key": lambda a: a.owner.keys.revoke(a.key),
    "rotate_key": lambda a: a.owner.keys.rotate(a.key),
    "end_session": lambda a: a.owner.logins.end_session(a.session),
    "create_invitation": lambda a: a.owner.logins.create_invitation("bob"),
    "withdraw_invitation": lambda a: a.owner.logins.withdraw_invitation(a.invitation),
    "map_identity": lambda a: a.owner.identities.map_identity("bob", "bobs-subject", issuer=ISSUER),
    "unmap_identity": lambda a: a.owner.identities.unmap_identity(a.identity),
    "map_group_claim": lambda a: a.owner.identities.map_group_claim("sailors", "crew", issuer=ISSUER),
    "unmap_group_claim": lambda a: a.owner.identities.unmap_group_claim(a.group_claim),
    "put_grant": lambda a: a.owner.access.grant("wiki", BOB, "editor"),
    "revoke_grant": lambda a: a.owner.access.revoke("wiki", BOB),
    "update_collection": lambda a: a.owner.collections.update("wiki", description=TEXT),
    "delete_collection": lambda a: a.owner.collections.delete("wiki"),
    "update_source": lambda a: a.owner.collections.update_source("pages", collection="wiki", name="texts"),
    "delete_source": lambda a: a.owner.collections.delete_source("pages", collection="wiki"),
    "set_retention": lambda a: a.owner.retention.set(Retention(days=3), scope=Scope("ann")),
    "delete_retention": lambda a: a.owner.retention.delete(scope=Scope("bob")),
    "create_connection": lambda a: a.owner.connections.create(
        "git", "markdown", {"path": str(a.folder)}, collection="wiki"
    ),
    "set_credentials": lambda a: a.owner.connections.set_credentials("docs", {}, collection="wiki"),
    "map_person": lambda a: a.owner.connections.map_person("docs", "user:1", "bob", collection="wiki"),
    "delete_connection": lambda a: a.owner.connections.delete("docs", collection="wiki"),
    "set_entity_extraction": lambda a: a.owner.graph.set_entity_extraction(collection="wiki"),
    "delete_graph": lambda a: a.owner.graph.delete("parts", collection="wiki"),
    "use_run": lambda a: a.owner.experiments.use_run(a.run),
    "undo_defaults": lambda a: a.owner.experiments.undo_defaults("wiki", version=1),
    "reembed": lambda a: a.owner.maintenance.reembed("vectors:3", collection="wiki"),
}
PEOPLE = (
    *PEOPLE_OPERATIONS,
    *KEY_OPERATIONS,
    *LOGIN_OPERATIONS,
    *IDENTITY_OPERATIONS,
    *ACCESS_OPERATIONS,
)
OF_PEOPLE = [operation.name for operation in PEOPLE if operation.audited]
OF_THE_DIRECTORY = {"sync_groups"}
"""Each membership that it changes leaves a row, with the directory as its actor."""
LIMITED_BY_THE_KEY = {"create_key", "end_session", "revoke_key", "rotate_key"}
"""A key with an origin makes, renews and revokes keys like itself, and ends their sessions."""


@pytest.fixture
async def audited(tmp_path: Path) -> AsyncIterator[Audited]:
    pages = tmp_path / "pages"
    pages.mkdir()
    async with conspectus.open(tmp_path / "store", settings=Settings(embedder="none")) as engine:
        first = await engine.keys.create_first()
        assert first is not None
        for name in ("ann", "bob"):
            await engine.people.create_user(name)
        await engine.people.create_group("crew")
        await engine.people.add_member("crew", "bob")
        await engine.collections.create("wiki")
        await engine.collections.get_or_create_source("pages", collection="wiki")
        await engine.graph.get_or_create("parts", collection="wiki")
        await engine.access.grant("wiki", BOB, "viewer")
        await engine.retention.set(Retention(days=9), scope=Scope("bob"))
        await engine.connections.create("docs", "markdown", {"path": str(pages)}, collection="wiki")
        key = await engine.keys.create("bob", scopes=SCOPES, expires="never")
        owner = engine.as_person(await engine.keys.authenticate(first.secret))
        await engine.sessions.start(await engine.keys.authenticate(key.secret))
        (session,) = await engine.logins.list_sessions("bob")
        invitation = (await engine.logins.create_invitation("ann")).invitation
        identity = await engine.identities.map_identity("ann", "anns-subject", issuer=ISSUER)
        claim = await engine.identities.map_group_claim("crew", "crew", issuer=ISSUER)
        await engine.add([NewDocument("a page", key="page")], collection="wiki", source="pages", wait=True)
        question = NewQuestion("page", (NewEvidence("page", 0, 6),))
        question_set = await engine.experiments.create_set("set", [question], collection="wiki")
        run = await engine.experiments.start_run(question_set.id)
        await engine.experiments.use_run(run.id)
        ids = (key.key.id, session.id, invitation.id, identity.id, claim.id, run.id)
        yield Audited(engine, owner, *ids, pages)


def test_every_write_about_people_is_audited() -> None:
    writes = {operation.name for operation in PEOPLE if operation.verb != "GET" and not operation.audited}
    assert writes == OF_THE_DIRECTORY
    assert AUDITED.keys() == WRITES.keys()


@pytest.mark.parametrize("name", WRITES)
async def test_an_audited_operation_leaves_a_row(audited: Audited, name: str) -> None:
    before = {row.id for row in await audited.rows()}
    began = datetime.now(UTC)
    result = await WRITES[name](audited)
    person = await audited.owner.people.whoami()
    rows = [row for row in await audited.rows() if row.id not in before and row.action == name]
    assert len(rows) == 1
    (row,) = rows
    assert (row.actor, row.actor_name, row.key) == (person.id, "owner", person.key)
    assert row.subject and abs(row.created - began) < timedelta(minutes=1)
    secret = getattr(result, "secret", getattr(result, "token", "no secret"))
    row_text = repr(row)
    assert (
        secret not in row_text
        and LABEL not in row_text
        and TEXT not in row_text
        and str(audited.folder) not in row_text
    )


@pytest.mark.parametrize("name", sorted({*OF_PEOPLE} - LIMITED_BY_THE_KEY))
async def test_accounts_are_changed_by_a_person_only(audited: Audited, name: str) -> None:
    crawler = replace(audited, owner=audited.owner.with_origin("web"))
    rows = await audited.rows()
    with pytest.raises(PermissionDenied, match="a person"):
        await WRITES[name](crawler)
    assert await audited.rows() == rows


async def test_what_changes_nothing_leaves_no_row(audited: Audited) -> None:
    await audited.engine.access.revoke("wiki", BOB)
    await audited.engine.people.remove_member("crew", "bob")
    await audited.engine.keys.revoke(audited.key)
    before = len(await audited.rows())
    await audited.engine.access.revoke("wiki", BOB)
    await audited.engine.people.remove_member("crew", "bob")
    await audited.engine.keys.revoke(audited.key)
    assert len(await audited.rows()) == before


async def test_rows_outlive_what_they_are_about(audited: Audited) -> None:
    await audited.engine.collections.delete("wiki")
    await audited.engine.people.delete_user("bob")
    named = {row.subject_name for row in await audited.rows() if row.action in {"put_grant", "delete_user"}}
    assert named == {"bob"}


async def test_a_purged_user_leaves_no_name(audited: Audited) -> None:
    await audited.engine.people.delete_user("bob", purge=True)
    rows = await audited.rows()
    assert "bob" not in {name for row in rows for name in (row.actor_name, row.subject_name)}
    assert "bob" not in " ".join(row.detail for row in rows).split()


async def test_the_first_start_is_in_the_log(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        await engine.keys.create_first()
        entries = (await engine.access.list_audit()).entries
        assert [(row.action, row.subject_name) for row in entries] == [
            ("create_key", "owner"),
            ("create_user", "owner"),
        ]


async def test_changes_and_queries_as_others_are_one_log(audited: Audited) -> None:
    await audited.owner.search.explain_as("x", 500, user="bob", collection="wiki")
    await audited.owner.people.create_user("carol")
    pages: list[str] = []
    after = None
    while True:
        page = await audited.engine.access.list_audit(after=after, limit=3)
        pages += [row.action for row in page.entries]
        after = page.next
        if after is None:
            break
    assert pages[:2] == ["create_user", "explain_as"]
    assert len(pages) == len(await audited.rows())

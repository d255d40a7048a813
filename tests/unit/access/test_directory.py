"""Whom a person may name, and that a name tells nothing about whom they may not."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from tests.support.counting import counting

import conspectus
from conspectus.access.directory import ADVICE
from conspectus.engine import Engine
from conspectus.errors import NotFound
from conspectus.model.access import GranteeKind, Principal
from conspectus.settings import Settings

HIDDEN, MISSING = "eve-hidden", "eve-absent"
"""A user and a group that exist, but not for Ann; and names of nobody."""


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    """A store in which Ann owns a collection, and Ben may read one source of it."""
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        for name in ("ann", "ben", HIDDEN):
            await engine.people.create_user(name)
        for name in ("team", HIDDEN):
            await engine.people.create_group(name)
        ann = await enter(engine, "ann")
        await ann.add("Quinces ripen in October.", collection="wiki", source="pages")
        await engine.access.grant("ann/wiki", Principal("user", "ben"), "viewer", source="pages")
        yield engine


async def enter(owner: Engine, name: str) -> Engine:
    """The store as a user sees it."""
    return owner.as_person((await owner.people.get_user(name)).person)


Call = Callable[[Engine, str], Awaitable[object]]
CALLS: Mapping[str, tuple[GranteeKind, Call]] = {
    "grant": ("user", lambda ann, name: ann.access.grant("wiki", Principal("user", name), "viewer")),
    "revoke": ("user", lambda ann, name: ann.access.revoke("wiki", Principal("user", name))),
    "roles": ("user", lambda ann, name: ann.access.effective_roles(name)),
    "see as": (
        "user",
        lambda ann, name: ann.search.explain_as("quinces", 100, user=name, collection="wiki"),
    ),
    "grant a group": (
        "group",
        lambda ann, name: ann.access.grant("wiki", Principal("group", name), "viewer"),
    ),
    "revoke from a group": (
        "group",
        lambda ann, name: ann.access.revoke("wiki", Principal("group", name)),
    ),
}


@pytest.mark.parametrize("label", CALLS)
async def test_a_hidden_name_costs_and_says_as_much_as_a_missing_one(owner: Engine, label: str) -> None:
    ann, (kind, call) = await enter(owner, "ann"), CALLS[label]
    answers = []
    for name in (MISSING, HIDDEN, MISSING, HIDDEN):
        with counting() as counted, pytest.raises(NotFound) as refusal:
            await call(ann, name)
        error = refusal.value
        assert error.name == name
        answers.append((str(error).replace(name, "NAME"), error.kind, counted.statements))
    assert answers[2] == answers[3]
    assert {answer[:2] for answer in answers} == {(f"no {kind} 'NAME'; {ADVICE[kind]}", kind)}


@pytest.mark.parametrize("label", CALLS)
async def test_anybody_is_reached_by_id(owner: Engine, label: str) -> None:
    ann, (kind, call) = await enter(owner, "ann"), CALLS[label]
    accounts = await (owner.people.list_users() if kind == "user" else owner.people.list_groups())
    number = next(account.id for account in accounts if account.name == HIDDEN)
    assert await call(ann, number) is not None


@pytest.mark.parametrize("label", CALLS)
async def test_the_owner_names_everybody(owner: Engine, label: str) -> None:
    await owner.add("Quinces", collection="wiki")
    await CALLS[label][1](owner, HIDDEN)
    with pytest.raises(NotFound) as refusal:
        await CALLS[label][1](owner, MISSING)
    assert str(refusal.value) == f"no {CALLS[label][0]} '{MISSING}'"


@pytest.mark.parametrize("label", CALLS)
async def test_in_an_open_directory_everybody_is_named(tmp_path: Path, label: str) -> None:
    settings = Settings(embedder="none", user_directory="open")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        await engine.people.create_user("ann")
        await engine.people.create_user(HIDDEN)
        await engine.people.create_group(HIDDEN)
        ann = await enter(engine, "ann")
        await ann.add("Quinces", collection="wiki")
        assert await CALLS[label][1](ann, HIDDEN) is not None


async def test_those_with_a_common_source_or_group_are_named(owner: Engine) -> None:
    ann, ben = await enter(owner, "ann"), await enter(owner, "ben")
    await ann.access.grant("wiki", Principal("user", "ben"), "manager")
    for name in (HIDDEN, "team"):
        with pytest.raises(NotFound):
            await ann.access.effective_roles(name)
    await owner.people.add_member("team", "ann")
    await owner.people.add_member("team", HIDDEN)
    assert [role.role for role in await ann.access.effective_roles(HIDDEN)] == [None, None]
    with pytest.raises(NotFound):
        await ben.access.effective_roles(HIDDEN, collection="ann/wiki")
    await ann.access.grant("wiki", Principal("group", "team"), "viewer", source="pages")
    roles = await ben.access.effective_roles(HIDDEN, collection="ann/wiki")
    assert [role.role for role in roles] == [None, "viewer"]


async def test_people_name_themselves_and_the_owner(owner: Engine) -> None:
    ann = await enter(owner, "ann")
    assert {role.role for role in await ann.access.effective_roles("ann")} == {"owner"}
    for name in ("owner", "local"):
        assert {role.role for role in await ann.access.effective_roles(name)} == {"owner"}

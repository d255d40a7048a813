"""Readers, editors, managers, outsiders and narrow keys, each with every method of memories and graphs."""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.permission_remembering import (
    BOB,
    CHANGING,
    CHANGING_A_GRAPH,
    MANAGING,
    PRYING,
    READING,
    READING_A_GRAPH,
    SECRET,
    Made,
    methods,
    prepared,
    told,
    tried,
)
from tests.support.served import served

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.graph import GraphService
from conspectus.engine.memory import MemoryService
from conspectus.engine.retention import RetentionService
from conspectus.model.access import Principal, Role, Scope
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical", retention_interval_minutes=0)
COLLECTION = "memory"
READS = {**READING, **READING_A_GRAPH}
WRITES = {**CHANGING, **CHANGING_A_GRAPH}
BEYOND = {**WRITES, **MANAGING}
MAKING = {
    "memory.add",
    "memory.import_lines",
    "retention.set",
    "graph.add_nodes",
    "graph.add_edges",
    "graph.get_or_create",
}
"""What makes a collection of one's own where there is none of that name for oneself."""
View = Callable[..., Any]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    model = ScriptedChatModel(['{"facts": []}'])
    async with conspectus.open(
        tmp_path, settings=SETTINGS, embedder=HashedEmbedder(), chat_model=model
    ) as opened:
        await opened.keys.create_first()
        yield opened


@asynccontextmanager
async def open_views(engine: Engine, *, remote: bool) -> AsyncIterator[View]:
    """Makes a view for someone new, who is granted a role on the collection, or on one source of it."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(application(engine, SETTINGS))) if remote else ""

        async def view(
            name: str,
            role: Role | None,
            source: str | None = None,
            scopes: tuple[Scope, ...] = ("read", "write"),
        ) -> Any:
            user = await engine.people.create_user(name)
            if role is not None:
                await engine.access.grant(COLLECTION, Principal("user", user.id), role, source=source)
            secret = (await engine.keys.create(name, scopes=scopes)).secret
            if not remote:
                return engine.as_person(await engine.keys.authenticate(secret))
            return await stack.enter_async_context(conspectus.connect(url, api_key=secret, settings=SETTINGS))

        yield view


def outcome_of_all(trials: Mapping[str, Any], result: str) -> dict[str, str]:
    return dict.fromkeys(trials, result)


def test_every_method_is_tried() -> None:
    services = {"graph": GraphService, "memory": MemoryService, "retention": RetentionService}
    public = {
        f"{attribute}.{name}"
        for attribute, service in services.items()
        for name, _ in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert public - {"memory.start", "retention.start"} == methods()


async def check_outsider(engine: Engine, view: Any, ids: Made) -> None:
    """Whoever was granted nothing has at most memories and graphs of one's own."""
    before = await told(engine, ids, READS)
    trials = {name: trial for name, trial in {**READS, **BEYOND}.items() if name not in MAKING}
    assert await tried(view, ids, trials) == outcome_of_all(trials, "NotFound")
    await tried(view, ids, {name: BEYOND[name] for name in MAKING})
    assert _without_timings(await told(engine, ids, READS)) == _without_timings(before)
    assert SECRET not in await told(view, ids, PRYING)


@pytest.mark.parametrize("remote", [False, True])
async def test_who_may_do_what(engine: Engine, remote: bool) -> None:
    ids = await prepared(engine, COLLECTION)
    async with open_views(engine, remote=remote) as view:
        await check_outsider(engine, await view("out", None), ids)
        reader, narrow = await view("read", "viewer"), await view("narrow", "manager", scopes=("read",))
        for who in (reader, narrow):
            assert await tried(who, ids, READS) == outcome_of_all(READS, "ok")
            assert await tried(who, ids, {**WRITES, **MANAGING}) == outcome_of_all(
                {**WRITES, **MANAGING}, "PermissionDenied"
            )
        editor, manager = await view("edit", "editor"), await view("manage", "manager")
        assert await tried(editor, ids, MANAGING) == outcome_of_all(MANAGING, "PermissionDenied")
        assert await tried(editor, ids, WRITES) == outcome_of_all(WRITES, "ok")
        assert await tried(manager, ids, MANAGING) == outcome_of_all(MANAGING, "ok")


@pytest.mark.parametrize("remote", [False, True])
async def test_nothing_of_others_is_seen(engine: Engine, remote: bool) -> None:
    ids = await prepared(engine, COLLECTION)
    home = (await engine.documents.get(ids.mine)).source
    async with open_views(engine, remote=remote) as view:
        ann = await view("ann", "editor", source=home)
        assert await tried(ann, ids, READING) == outcome_of_all(READING, "ok")
        assert await tried(ann, ids, READING_A_GRAPH) == outcome_of_all(READING_A_GRAPH, "NotFound")
        answers = await told(ann, ids, {**PRYING, **READING})
        assert SECRET not in answers
        listed = await told(ann, ids, READING)
        assert [word for word in (ids.others, "people", "bob", "bo2") if word in listed] == []
        missing = replace(ids, others="nothing")
        for name in ("memory.get", "memory.list_versions", "memory.update"):
            hidden, ghost = [
                await told(ann, memory_ids, {name: PRYING[name]}) for memory_ids in (ids, missing)
            ]
            assert hidden.replace(ids.others, "nothing") == ghost
    assert (await engine.memory.get(ids.others, scope=BOB, collection=COLLECTION)).text.endswith(f"{SECRET}.")


def _without_timings(answers: str) -> str:
    """What was said without how long it took."""
    return re.sub(r"timings=\{[^}]*\}", "", answers)

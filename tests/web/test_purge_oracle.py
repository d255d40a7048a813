"""A purge leaves nothing: what was planted by every operation is looked for in every file and every table."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from conspectus.model.text_columns import TEXT_COLUMNS
from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web.chatting import Chats, chats
from tests.web.finding import KEPT, in_files, in_store, in_tables
from tests.web.planting import PLANTED, Planter

PAGE = Answer(b"zqxfetchedqz words of a page")
ALL = {"filter": {"and": []}, "purge": True}


async def create_accounts(site: Chats) -> str:
    """The key of the owner, once there is the user `viewer` beside."""
    owner = await site.engine.keys.create_first()
    assert owner is not None
    await site.engine.people.create_user("viewer")
    return owner.secret


@asynccontextmanager
async def running_planted(
    folder: Path, workers: int, *, accounts: bool = True
) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients of as many processes of one store, in which every operation has planted something."""
    wiki = folder / "wiki"
    wiki.mkdir()
    (wiki / "zqxpageqz.md").write_text("# zqxheadqz\n\nzqxbodyqz")
    settings = {"workers": workers, "chat_resume_seconds": 600, "fetch_allowed_networks": "127.0.0.0/8"}
    settings["answer_records"] = "all"
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": PAGE}))
        model = ScriptedChatModel(["zqxanswerqz"])
        sites: list[Chats] = [
            await stack.enter_async_context(chats(folder, model, **settings)) for _ in range(workers)
        ]
        key = await create_accounts(sites[0]) if accounts else None
        clients = [await stack.enter_async_context(site.client(key)) for site in sites]
        planter = Planter(clients[0], sites[0].app.openapi(), web.base, str(wiki))
        planter.known |= {"user": "viewer"} if accounts else {}
        await planter.prepare()
        await planter.plant()
        assert planter.refused == []
        yield clients


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_nothing_is_left_of_what_any_operation_took_in(tmp_path: Path, workers: int) -> None:
    store = tmp_path / "data"
    async with running_planted(tmp_path, workers) as clients:
        one, *_, other = clients if workers > 1 else (clients[0], clients[0])
        answers = {"replays", "answers"} | ({"chat_frames"} if workers > 1 else set())
        await until(lambda: answers <= in_tables(store).keys())
        collections = [collection["id"] for collection in (await one.get("/collections")).json()]
        for collection in collections:
            gone = await other.post(f"/collections/{collection}/documents/delete", json=ALL)
            assert gone.json()["purged"]
        left, lying = in_store(store)
        assert left.keys() <= KEPT
        jobs = (await one.get("/jobs")).json()["jobs"]
        assert all(job["title"] == job["kind"] for job in jobs if job["kind"] != "sync")
        assert not any(PLANTED.search(str(job["result"]).encode()) for job in jobs)
        assert lying <= set().union(*left.values())
        for collection in collections:
            gone = await other.delete(f"/collections/{collection}", params={"purge": True})
            assert gone.json()["purged"]
        assert in_store(store) == ({}, set())
    assert in_files(store) == set()


ACCOUNT_NAMES = {"users", "groups", "keys", "account_changes"}
"""Tables with what people write into accounts: names, and labels of keys."""


async def test_nothing_is_left_of_a_purged_account(tmp_path: Path) -> None:
    """Names of groups, which nobody purges, stay in the audit log alone."""
    store = tmp_path / "data"
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(chats(tmp_path, ScriptedChatModel(["an answer"])))
        client = await stack.enter_async_context(site.client(await create_accounts(site)))
        await plant_accounts(client)
        columns = {name for name, rule in TEXT_COLUMNS.items() if rule.screening == "account"}
        assert {"users.name", "groups.name"} <= columns
        assert in_tables(store).keys() == ACCOUNT_NAMES
        gone = await client.delete("/users/zqxpersonqz", params={"purge": True})
        assert gone.status_code < 300, gone.text
        left, lying = in_store(store)
        assert left == {"groups": {"zqxcrewqz"}, "account_changes": {"zqxcrewqz"}}
        assert lying == {"zqxcrewqz"}
        assert (await client.delete("/groups/zqxcrewqz")).status_code < 300
        assert in_tables(store) == {"account_changes": {"zqxcrewqz"}}


async def plant_accounts(client: httpx.AsyncClient) -> None:
    """Write a name or a label by each operation that takes one."""
    person = (await post(client, "/users", {"name": "zqxpersonqz"}))["id"]
    await post(client, "/groups", {"name": "zqxcrewqz"})
    joined = await client.put(f"/groups/zqxcrewqz/members/{person}")
    assert joined.status_code < 300, joined.text
    key = await post(client, "/keys", {"user": person, "label": "zqxlabelqz"})
    await post(client, f"/keys/{key['key']['id']}/rotate", {})
    disabled = await client.patch(f"/users/{person}", json={"disabled": True})
    assert disabled.status_code < 300, disabled.text


async def post(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()

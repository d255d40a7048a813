"""A purge leaves nothing: what was planted by every operation is looked for in every file and every table."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from conspectus.testing.chat_models import ScriptedChatModel
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web.chatting import Chats, chats
from tests.web.finding import KEPT, in_files, in_store, in_tables
from tests.web.planting import PLANTED, Planter

PAGE = Answer(b"zqxfetchedqz words of a page")
ALL = {"filter": {"and": []}, "purge": True}


async def with_accounts(site: Chats) -> str:
    """The key of the owner, once there is the user `viewer` beside."""
    owner = await site.engine.people.create_owner()
    assert owner is not None
    await site.engine.people.create_user("viewer")
    return owner.secret


@asynccontextmanager
async def planted(
    folder: Path, workers: int, *, accounts: bool = True
) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients of as many processes of one store, in which every operation has planted something."""
    wiki = folder / "wiki"
    wiki.mkdir()
    (wiki / "zqxpageqz.md").write_text("# zqxheadqz\n\nzqxbodyqz")
    settings = {"workers": workers, "chat_resume_seconds": 600, "fetch_allowed_networks": "127.0.0.0/8"}
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(ScriptedServer({"/zqxpageqz": PAGE}))
        model = ScriptedChatModel(["zqxanswerqz"])
        sites: list[Chats] = [
            await stack.enter_async_context(chats(folder, model, **settings)) for _ in range(workers)
        ]
        key = await with_accounts(sites[0]) if accounts else None
        clients = [await stack.enter_async_context(each.client(key)) for each in sites]
        planter = Planter(clients[0], sites[0].app.openapi(), web.base, str(wiki))
        planter.known |= {"user": "viewer"} if accounts else {}
        await planter.prepare()
        await planter.plant()
        assert planter.refused == []
        yield clients


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_nothing_is_left_of_what_any_operation_took_in(tmp_path: Path, workers: int) -> None:
    store = tmp_path / "data"
    async with planted(tmp_path, workers) as clients:
        one, *_, other = clients if workers > 1 else (clients[0], clients[0])
        answers = {"replays", "chat_frames"} if workers > 1 else {"replays"}
        await until(lambda: answers <= in_tables(store).keys())
        collections = [each["id"] for each in (await one.get("/collections")).json()]
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

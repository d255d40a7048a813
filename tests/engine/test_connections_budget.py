"""Syncs that may send only so many requests to their remote."""

from dataclasses import replace
from pathlib import Path

from tests.support.mediawiki_server import WikiSite
from tests.support.web_server import ScriptedServer

import conspectus
from conspectus import Engine, Settings
from conspectus.model.jobs import Job

PAGES = 8
SETTINGS = replace(
    Settings(), fetch_allowed_networks="127.0.0.1", job_max_attempts=1, embedder="none", sync_max_requests=5
)


async def sync(engine: Engine) -> Job:
    job = await engine.connections.sync("team", collection="shared")
    return await engine.jobs.wait(job.id)


async def test_syncs_with_a_small_budget_continue_each_other(tmp_path: Path) -> None:
    site = WikiSite()
    for number in range(PAGES):
        await site.put("Main", f"Page {number}", f"The combination of safe {number}.")
    async with ScriptedServer({"/api.php": site.answer}) as server:
        address = f"http://127.0.0.1:{server.port}/api.php"
        async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
            await engine.connections.create("team", "mediawiki", {"address": address}, collection="shared")
            cut_off = await sync(engine)
            assert (cut_off.state, cut_off.code) == ("failed", "request_budget_spent")
            assert cut_off.result is not None and cut_off.result["requests"] == 5
            [connection] = await engine.connections.list(collection="shared")
            assert (connection.access, connection.state) == ("granted", "idle")
        settings = replace(SETTINGS, sync_max_requests=1_000)
        async with conspectus.open(tmp_path, settings=settings) as engine:
            completed = await sync(engine)
            assert completed.state == "succeeded" and completed.result is not None
            assert 0 < int(str(completed.result["requests"])) <= 1_000
            listed = await engine.documents.list(collection="shared", limit=100)
            assert len(listed.documents) == PAGES

"""Permissions of jobs: who sees one, who cancels one, and with whose rights it runs."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.jobs_contract import Site
from tests.support.web_server import Answer, ScriptedServer

import conspectus
from conspectus.engine import Engine
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import Person, Principal, Role
from conspectus.settings import Settings

SETTINGS = replace(
    Settings(), embedder="none", fetch_allowed_networks="127.0.0.1", job_backoff_ms=1, job_grace_seconds=0
)
SLOW = Answer(b"slow page", delay=600.0)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/page": Answer(b"a page"), "/slow": SLOW}) as running:
        yield running


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as opened:
        await opened.collections.get_or_create("wiki")
        yield opened


async def add_person(
    engine: Engine, name: str, role: Role | None = None, *, source: str | None = None
) -> Engine:
    """A new user, with a role on the collection or on one source of it."""
    user = await engine.people.create_user(name)
    if role is not None:
        await engine.access.grant("wiki", Principal("user", user.id), role, source=source)
    return engine.as_person(Person(user.name, user.owner, user.id))


async def sees_job(person: Engine, job: str) -> bool:
    try:
        return (await person.jobs.get(job)).id == job
    except NotFound:
        return False


async def test_a_job_is_seen_by_those_who_see_what_it_is_about(
    engine: Engine, server: ScriptedServer
) -> None:
    docs_job = await engine.jobs.ingest_url(f"{server.base}/page", collection="wiki", source="docs")
    await engine.jobs.wait(docs_job.id, timeout=60)
    other_job = await engine.jobs.ingest_url(f"{server.base}/page", collection="wiki", source="other")
    await engine.jobs.wait(other_job.id, timeout=60)
    viewer, partial, stranger = (
        await add_person(engine, "ann", "viewer"),
        await add_person(engine, "bob", "viewer", source="docs"),
        await add_person(engine, "eve"),
    )
    both = [other_job.id, docs_job.id]
    for person, expected in ((engine, both), (viewer, both), (partial, [docs_job.id]), (stranger, [])):
        assert [job.id for job in (await person.jobs.list()).jobs] == expected
        assert sum((await person.jobs.report()).states.values()) == len(expected)
        assert [job for job in both if await sees_job(person, job)] == expected
    with pytest.raises(NotFound):
        await stranger.jobs.list(collection="wiki")


async def test_a_job_is_stopped_by_its_owner_or_an_editor(engine: Engine, server: ScriptedServer) -> None:
    viewer, editor, stranger = (
        await add_person(engine, "ann", "viewer"),
        await add_person(engine, "bob", "editor"),
        await add_person(engine, "eve"),
    )
    job = await engine.jobs.ingest_url(f"{server.base}/slow", collection="wiki")
    with pytest.raises(PermissionDenied):
        await viewer.jobs.cancel(job.id)
    with pytest.raises(NotFound):
        await stranger.jobs.cancel(job.id)
    assert (await editor.jobs.cancel(job.id)).state == "cancelled"
    assert (await editor.jobs.cancel(job.id)).state == "cancelled"
    with pytest.raises(PermissionDenied):
        await viewer.jobs.retry(job.id)
    assert (await editor.jobs.retry(job.id)).state == "queued"


async def test_what_one_may_not_write_is_refused_before_there_is_a_job(
    engine: Engine, server: ScriptedServer
) -> None:
    await engine.collections.get_or_create_source("docs", collection="wiki")
    viewer, editor, stranger = (
        await add_person(engine, "ann", "viewer"),
        await add_person(engine, "bob", "editor"),
        await add_person(engine, "eve"),
    )
    target = {"collection": "wiki"}
    with pytest.raises(PermissionDenied):
        await viewer.jobs.ingest_url(f"{server.base}/page", source="docs", **target)
    with pytest.raises(PermissionDenied):
        await editor.jobs.ingest_url(f"{server.base}/page", **target)
    mine = await stranger.jobs.ingest_url(f"{server.base}/page", **target)
    assert mine.collection != (await engine.collections.get("wiki")).id
    done = await editor.jobs.ingest_url(f"{server.base}/page", source="docs", **target)
    assert (await editor.jobs.wait(done.id, timeout=60)).state == "succeeded"
    assert [job.id for job in (await engine.jobs.list(collection="wiki")).jobs] == [done.id]


@pytest.mark.parametrize("how", ["revoked", "disabled", "demoted"])
async def test_a_role_that_was_lost_meanwhile_holds_for_the_job(
    engine: Engine, server: ScriptedServer, how: str
) -> None:
    bob = await add_person(engine, "bob", "editor")
    await engine.collections.get_or_create_source("docs", collection="wiki")
    grantee = Principal("user", (await bob.people.whoami()).id)
    server.answers["/page"] = [Answer(b"busy", 503, delay=0.2), Answer(b"a page", delay=0.2)]
    job = await bob.jobs.ingest_url(f"{server.base}/page", collection="wiki", source="docs")
    await Site().until(lambda: server.count("/page") == 1)
    if how == "revoked":
        await engine.access.revoke("wiki", grantee)
    elif how == "demoted":
        await engine.access.grant("wiki", grantee, "viewer")
    else:
        await engine.people.set_user_disabled("bob")
    ended = await engine.jobs.wait(job.id, timeout=60)
    if how == "disabled":
        assert ended.state == "cancelled"
    else:
        assert (ended.state, ended.code in {"not_found", "permission_denied"}) == ("failed", True)
    assert await engine.documents.count(collection="wiki") == 0
    assert [collection.name for collection in await engine.collections.list()] == ["wiki"]
    if how == "revoked":
        with pytest.raises(NotFound):
            await bob.jobs.get(job.id)


async def test_only_the_owner_account_sees_calls_to_providers(engine: Engine) -> None:
    assert list(await engine.jobs.list_requests()) == list(await engine.jobs.request_totals()) == []
    bob = await add_person(engine, "bob", "editor")
    for request in (bob.jobs.list_requests(), bob.jobs.request_totals()):
        with pytest.raises(PermissionDenied):
            await request
    for request in (engine.jobs.list_requests(limit=0), engine.jobs.request_totals(hours=0)):
        with pytest.raises(InvalidInput):
            await request


async def test_what_a_close_interrupts_goes_on_at_the_next_opening(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.answers["/page"] = [SLOW, Answer(b"a page")]
    headers = {"Authorization": "s3cr3t"}
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        job = await engine.jobs.ingest_url(f"{server.base}/page", headers=headers)
        await Site().until(lambda: server.count() == 1)
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        assert (await engine.jobs.get(job.id)).state == "queued"
        ended = await engine.jobs.wait(job.id, timeout=60)
        assert (ended.state, ended.attempts) == ("succeeded", 2)
    assert [request.headers["authorization"] for request in server.requests] == ["s3cr3t"] * 2


async def test_two_stores_in_one_process_run_their_jobs_at_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with (
        conspectus.open(tmp_path / "1", settings=SETTINGS) as one,
        conspectus.open(tmp_path / "2", settings=SETTINGS) as two,
        conspectus.open(tmp_path / "2", settings=SETTINGS) as again,
    ):
        jobs = [await engine.jobs.ingest_url(f"{server.base}/page") for engine in (one, two, again)]
        ended = [
            await engine.jobs.wait(job.id, timeout=60)
            for engine, job in zip((one, two, again), jobs, strict=True)
        ]
        assert [job.state for job in ended] == ["succeeded"] * 3
        assert server.count() == 3


async def test_a_job_is_cancelled_by_a_process_that_does_not_run_it(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with (
        conspectus.open(tmp_path, settings=SETTINGS) as runs,
        conspectus.open(tmp_path, settings=SETTINGS) as asks,
    ):
        job = await runs.jobs.ingest_url(f"{server.base}/slow")
        await Site().until(lambda: server.count() == 1)
        assert (await asks.jobs.cancel(job.id)).state == "cancelled"
        next_job = await asks.jobs.ingest_url(f"{server.base}/page")
        assert (await asks.jobs.wait(next_job.id, timeout=60)).state == "succeeded"
        assert (await runs.jobs.get(job.id)).state == "cancelled"


async def test_waiting_ends_with_the_time_given(engine: Engine, server: ScriptedServer) -> None:
    job = await engine.jobs.ingest_url(f"{server.base}/slow")
    assert (await engine.jobs.wait(job.id, timeout=0.3)).state in {"queued", "running"}
    with pytest.raises(NotFound):
        await engine.jobs.wait("none", timeout=0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await engine.jobs.wait(job.id)


def test_a_store_is_opened_without_dbos(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys, conspectus\n"
        "async def main():\n"
        "    async with conspectus.open(sys.argv[1]) as engine:\n"
        "        await engine.jobs.list()\n"
        "        print([name for name in ('dbos', 'httpcore') if name in sys.modules])\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (completed.stdout, completed.stderr) == ("[]\n", "")

"""Jobs offer the actions that the server carries out, and no others."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from tests.waiting import until

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import Conflict, PermissionDenied
from conspectus.model.access import Person, Principal
from conspectus.model.ids import LOCAL, JobId
from conspectus.model.jobs import FINISHED, Job, JobAction, JobKind, JobState, Upload

SETTINGS = replace(Settings(), embedder="none", run_background_jobs="off")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        await opened.collections.get_or_create("wiki")
        yield opened


async def test_every_offer_is_kept_and_nothing_else_is_possible(engine: Engine) -> None:
    collection = (await engine.collections.get("wiki")).id
    store = engine._context.parts.work.job_store
    cases = product(get_args(JobKind), get_args(JobState), (True, False), get_args(JobAction))
    for number, (kind, state, repeatable, action) in enumerate(cases):
        arguments = {} if repeatable else {"repeatable": False}
        new_job = Job(JobId(str(number)), kind, LOCAL, collection, None, "", datetime.now(UTC), arguments)
        job = await store.add(replace(new_job, state=state))
        offered = (await engine.jobs.get(job.id)).actions
        assert [job.actions for job in (await engine.jobs.list(limit=1)).jobs] == [offered]
        if action == "cancel":
            assert ((await engine.jobs.cancel(job.id)).state != state) == (action in offered)
        elif action in offered:
            assert (await engine.jobs.retry(job.id)).state == "queued"
        else:
            with pytest.raises(Conflict):
                await engine.jobs.retry(job.id)


async def test_who_may_not_change_a_job_is_offered_nothing(engine: Engine) -> None:
    job = await engine.jobs.ingest_files([Upload("a.md", b"heron")], collection="wiki")
    assert job.actions == ("cancel",)
    user = await engine.people.create_user("ann")
    await engine.access.grant("wiki", Principal("user", user.id), "viewer")
    viewer = engine.as_person(Person(user.name, user.owner, user.id))
    assert (await viewer.jobs.get(job.id)).actions == ()
    with pytest.raises(PermissionDenied):
        await viewer.jobs.cancel(job.id)


async def test_a_cancelled_upload_names_the_files_that_stayed(tmp_path: Path) -> None:
    names = [f"{number}.md" for number in range(40)]
    async with conspectus.open(tmp_path, settings=replace(SETTINGS, run_background_jobs="on")) as engine:
        job = await engine.jobs.ingest_files([Upload(name, b"# heron\n\nreeds") for name in names])

        async def has_begun() -> bool:
            return (await engine.jobs.get(job.id)).done > 0

        await until(has_begun)
        ended = await engine.jobs.cancel(job.id)
        stored = {document.key for document in (await engine.documents.list(limit=100)).documents}
        assert ended.state in FINISHED
        if ended.state == "cancelled":
            assert ended.result == {"stored": [name for name in names if name in stored]}
            assert ended.actions == ()

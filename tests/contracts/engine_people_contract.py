"""What every engine must do for people, and with long work."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.access import SCOPES, Principal
from conspectus.model.jobs import Upload
from tests.support.engine_samples import AnyEngine, untimed


class PeopleContract:
    """Accounts, groups, keys and roles."""

    async def test_accounts_come_and_go(self, engine: AnyEngine, local: AnyEngine) -> None:
        """By name or by id, with a clear word where it cannot be."""
        ann = await engine.create_user("ann b?#%")
        assert await engine.find_user("ann b?#%") == await local.find_user(ann.id) == ann
        assert ann in await engine.users()
        assert (await engine.disable_user(ann.id)).disabled
        assert not (await engine.disable_user("ann b?#%", disabled=False)).disabled
        with pytest.raises(Conflict):
            await engine.create_user("ann b?#%")
        with pytest.raises(InvalidInput):
            await engine.create_user("a/b")
        await engine.delete_user(ann.id)
        for call in (engine.find_user("ann b?#%"), engine.delete_user("ann"), engine.find_user("a/b")):
            with pytest.raises(NotFound) as caught:
                await call
            assert caught.value.kind == "user"

    async def test_groups_have_members(self, engine: AnyEngine) -> None:
        """Who join and leave."""
        ann, group = await engine.create_user("ann"), await engine.create_group("editors")
        await engine.join("editors", "ann")
        assert await engine.members(group.id) == [ann]
        assert await engine.groups() == [group]
        await engine.leave(group.id, ann.id)
        assert await engine.members("editors") == []
        await engine.delete_group("editors")
        with pytest.raises(NotFound):
            await engine.members("editors")

    async def test_keys_are_made_renewed_and_revoked(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Their secrets are shown once; they open what they are for."""
        ann = await engine.create_user("ann")
        expires = datetime.now(UTC) + timedelta(days=1)
        made = await engine.create_key("ann", label="laptop", scopes=["read"], expires=expires)
        assert (made.key.user, made.key.scopes, made.key.expires) == (ann.id, ("read",), expires)
        renewed = await engine.rotate_key(made.key.id)
        assert renewed.secret != made.secret
        assert [each.revoked is None for each in await engine.keys("ann")] == [False, True]
        ended = await engine.revoke_key(renewed.key.id)
        assert ended.revoked is not None
        assert ended in await local.keys("ann")
        with pytest.raises(Conflict):
            await engine.rotate_key(renewed.key.id)
        with pytest.raises(InvalidInput):
            await engine.create_key(expires=expires - timedelta(days=9))
        person = await engine.whoami()
        assert (person.owner, person.scopes) == (True, SCOPES)

    async def test_roles_are_given_and_taken(self, engine: AnyEngine, local: AnyEngine) -> None:
        """On a collection and on a source of it."""
        ann = await engine.create_user("ann")
        source = await engine.source("s", collection="wiki")
        whole = await engine.grant("wiki", Principal("user", "ann"), "viewer")
        part = await engine.grant("wiki", Principal("user", ann.id), "editor", source="s")
        assert (whole.source, part.source, part.grantee.id) == (None, source.id, ann.id)
        assert await engine.grants("wiki") == await local.grants("wiki")
        assert await engine.grants("wiki", source="s") == [part]
        assert await engine.revoke("wiki", Principal("user", "ann"), source="s") is True
        assert await engine.revoke("wiki", Principal("user", "ann"), source="s") is False
        with pytest.raises(NotFound):
            await engine.grant("wiki", Principal("group", "none"), "viewer")


class WorkContract:
    """Long work."""

    async def test_files_are_taken_in_by_a_job(
        self, engine: AnyEngine, local: AnyEngine, tmp_path: Path
    ) -> None:
        """From disk and from memory, with a report of what became of them."""
        (tmp_path / "boats.md").write_text("# Boats\n\nThe ferry leaves at noon.", encoding="utf-8")
        uploads = [Upload("boats.md", tmp_path / "boats.md"), Upload("Ä.txt", b"about cakes")]
        job = await engine.ingest_files(uploads, collection="new", source="mine")
        done = await engine.wait_job(job.id)
        assert (done.state, done.code) == ("succeeded", None)
        assert done == await engine.job(job.id) == await local.job(job.id)
        found = await engine.retrieve("ferry", collection="new", limit=1)
        assert untimed(found) == untimed(await local.retrieve("ferry", collection="new", limit=1))
        assert found.hits[0].document.title == "Boats"
        assert (await engine.jobs(collection="new", state="succeeded")).jobs == (done,)
        assert (await engine.jobs(state="failed")).jobs == ()
        assert (await engine.ingest_report()).states["succeeded"] == 1
        assert (await engine.cancel_job(job.id)).state == "succeeded"
        with pytest.raises(Conflict):
            await engine.retry_job(job.id)

    async def test_a_page_that_must_not_be_fetched_fails_its_job(self, engine: AnyEngine) -> None:
        """With the code of the reason; what is no address is refused at once."""
        job = await engine.ingest_url("http://127.0.0.1:9/", headers={"X": "y"}, chunk_size=500, overlap=50)
        done = await engine.wait_job(job.id, seconds=60)
        assert (done.state, done.code) == ("failed", "forbidden_address")
        for wrong in (
            engine.ingest_url("nonsense"),
            engine.ingest_url("http://a.example/", method="PROPFIND"),
        ):
            with pytest.raises(InvalidInput):
                await wrong
        with pytest.raises(InvalidInput):
            await engine.ingest_url("http://a.example/", colour=1)
        with pytest.raises(InvalidInput):
            await engine.ingest_files([])
        with pytest.raises(NotFound) as caught:
            await engine.wait_job("none")
        assert (caught.value.kind, caught.value.name) == ("job", "none")

    async def test_a_folder_is_followed(self, engine: AnyEngine, tmp_path: Path) -> None:
        """Connected, brought in step, and let go with what it brought."""
        files = tmp_path / "files"
        files.mkdir()
        (files / "a.md").write_text("# A\n\nabout ferries", encoding="utf-8")
        made = await engine.connect("wiki", "markdown", {"path": str(files)}, collection="new")
        assert [each.id for each in await engine.connections(collection="new")] == [made.id]
        job = await engine.wait_job((await engine.sync("wiki", collection="new")).id)
        assert (job.state, await engine.count(collection="new")) == ("succeeded", 1)
        assert (await engine.disconnect("wiki", collection="new", delete=True)).documents == 1
        with pytest.raises(NotFound) as caught:
            await engine.sync("wiki", collection="new")
        assert caught.value.kind == "connection"
        with pytest.raises(InvalidInput):
            await engine.connect("a/b", "markdown", {"path": str(files)})

    async def test_calls_to_providers_are_listed(self, engine: AnyEngine, local: AnyEngine) -> None:
        """As far as there were any."""
        assert await engine.embedding_requests() == await local.embedding_requests()
        assert await engine.request_totals(hours=1) == await local.request_totals(hours=1)
        for wrong in (engine.embedding_requests(limit=0), engine.request_totals(hours=0)):
            with pytest.raises(InvalidInput):
                await wrong

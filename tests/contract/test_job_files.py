"""What jobs need besides their rows: in a folder, and in a database where every machine finds it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conspectus.errors import UnreadableFile
from conspectus.model.ids import JobId
from conspectus.model.jobs import Upload
from conspectus.ports.jobs import JobFiles
from conspectus.records.jobs.files import PART_BYTES, SqlJobFiles
from conspectus.records.store import SqlRecords, open_records
from conspectus.sources.files.job_files import LocalJobFiles

JOB = JobId("5a921db3")
SIZES = (0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("emptied_url"))
    return str(tmp_path / "records.sqlite")


@pytest.fixture
async def records(address: str) -> AsyncIterator[SqlRecords]:
    opened = await open_records(address)
    yield opened
    await opened.close()


def kept_in(records: SqlRecords, folder: Path) -> SqlJobFiles:
    return SqlJobFiles(records.transactions, folder, now)


EACH = pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)


async def verify(here: JobFiles, there: JobFiles, folder: Path) -> None:
    """What one process keeps another one has, whatever it is, until it is dropped."""
    contents = [bytes([number]) * size for number, size in enumerate(SIZES)]
    path = folder / "given"
    path.write_bytes(contents[-1])
    uploads = [Upload("same name", data) for data in contents[:-1]] + [Upload("same name", path)]
    before = now() - timedelta(seconds=1)
    await here.store_files(JOB, uploads)
    path.unlink()
    for _ in range(2):
        assert [path.read_bytes() for path in await there.files(JOB)] == contents
    await here.store_secret(JOB, {"headers": {"X": "s3cr3t \u0000 ü"}})
    assert await there.secret(JOB) == {"headers": {"X": "s3cr3t \u0000 ü"}}
    assert list(await there.holders()) == [JOB]
    assert before < (await there.holders())[JOB] <= now() + timedelta(seconds=1)
    await there.drop(JOB)
    await here.drop(JOB)
    assert (await here.files(JOB), await here.secret(JOB), await here.holders()) == ((), None, {})


async def test_in_a_folder(tmp_path: Path) -> None:
    files = LocalJobFiles(tmp_path)
    await files.store_files(JobId("other"), [])
    await files.drop(JobId("other"))
    await files.store_files(JOB, [Upload("a", b"1")])
    assert [path.read_bytes() for path in await files.files(JOB)] == [b"1"]


@EACH
async def test_in_a_database(records: SqlRecords, tmp_path: Path) -> None:
    await verify(kept_in(records, tmp_path / "here"), kept_in(records, tmp_path / "there"), tmp_path)
    assert list((tmp_path / "there").iterdir()) == []


@EACH
async def test_nothing_is_kept_of_uploads_of_which_one_cannot_be_read(
    records: SqlRecords, tmp_path: Path
) -> None:
    files = kept_in(records, tmp_path)
    with pytest.raises(UnreadableFile, match="gone"):
        await files.store_files(JOB, [Upload("there", b"x"), Upload("gone", tmp_path / "nowhere")])
    assert await files.holders() == {}


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_copies_can_be_read_by_this_account_alone(records: SqlRecords, tmp_path: Path) -> None:
    files = kept_in(records, tmp_path / "copies")
    await files.store_files(JOB, [Upload("a", b"1")])
    [copy] = await files.files(JOB)
    assert [folder.stat().st_mode & 0o077 for folder in (copy.parent, tmp_path / "copies")] == [0, 0]
    await asyncio.gather(*(files.drop(JOB) for _ in range(3)))
    assert not copy.exists()

"""Files are shown to those who may read their source, and to others neither by a path nor by an error."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import product
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import NotFound
from conspectus.model.access import Principal
from conspectus.model.records import NewDocument

CLOSED = ("/team/closed", "/team/closed/dir", "/team/open2/dir/k")


async def test_a_path_tells_nothing_to_those_without_a_grant(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        for source in ("open", "closed", "/disk/closed/open2"):
            await engine.add(NewDocument(f"needle {source}", key="dir/k"), source=source, collection="team")
        await engine.add(NewDocument("needle hidden", key="k"), collection="hidden")
        ann = await open_with_grant(engine)
        assert [folder.path for folder in (await ann.files.list()).entries] == ["/team/"]
        assert [folder.path for folder in (await ann.files.list("/team")).entries] == ["/team/open/"]
        assert [file.path for file in (await ann.files.find()).entries] == ["/team/open/dir/k"]
        assert [file.path for file in (await ann.files.grep("needle")).files] == ["/team/open/dir/k"]
        assert (await ann.files.grep("closed|hidden")).files == ()
        reads = (ann.files.list, ann.files.find, ann.files.read, partial(ann.files.grep, "x"))
        for path, read in product(("/hidden", "/hidden/default/k", *CLOSED), reads):
            assert await read_error(read, path) == await read_error(read, f"/no{path[1:]}")


async def read_error(read: Callable[[str], Awaitable[object]], path: str) -> str:
    """The error of a read without the path."""
    with pytest.raises(NotFound) as caught:
        await read(path)
    return str(caught.value).replace(path, "")


async def open_with_grant(engine: Engine) -> Engine:
    """The engine of somebody who may read one source."""
    user = await engine.people.create_user("ann")
    await engine.access.grant("team", Principal("user", user.id), "viewer", source="open")
    key = await engine.keys.create("ann")
    return engine.as_person(await engine.keys.authenticate(key.secret))

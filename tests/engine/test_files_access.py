"""Files are shown to those who may read their source, and to others neither by a path nor by an error."""

import re
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
from conspectus.text.lines import LinePattern, shown

CLOSED = ("/team/closed", "/team/closed/dir", "/team/open2/dir/k")


async def test_a_path_tells_nothing_to_those_without_a_grant(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        for source in ("open", "closed", "/disk/closed/open2"):
            await engine.add(NewDocument(f"needle {source}", key="dir/k"), source=source, collection="team")
        await engine.add(NewDocument("needle hidden", key="k"), collection="hidden")
        ann = await with_grant(engine)
        assert [each.path for each in (await ann.files.list()).entries] == ["/team/"]
        assert [each.path for each in (await ann.files.list("/team")).entries] == ["/team/open/"]
        assert [each.path for each in (await ann.files.find()).entries] == ["/team/open/dir/k"]
        assert [each.path for each in (await ann.files.grep("needle")).files] == ["/team/open/dir/k"]
        assert (await ann.files.grep("closed|hidden")).files == ()
        reads = (ann.files.list, ann.files.find, ann.files.read, partial(ann.files.grep, "x"))
        for path, read in product(("/hidden", "/hidden/default/k", *CLOSED), reads):
            assert await error(read, path) == await error(read, f"/no{path[1:]}")


async def error(read: Callable[[str], Awaitable[object]], path: str) -> str:
    """The error of a read without the path."""
    with pytest.raises(NotFound) as caught:
        await read(path)
    return str(caught.value).replace(path, "")


async def with_grant(engine: Engine) -> Engine:
    """The engine of somebody who may read one source."""
    user = await engine.people.create_user("ann")
    await engine.people.grant("team", Principal("user", user.id), "viewer", source="open")
    key = await engine.people.create_key("ann")
    return engine.as_person(await engine.people.authenticate(key.secret))


@pytest.mark.parametrize("pattern", ["a", "a$", "^b", "x*", "[^ü]", "b.*a"])
def test_lines_are_those_that_a_simple_search_finds(pattern: str) -> None:
    """Also in blocks, of which a search reads one at a time."""
    text = "a\nüb\n\nab\r\n" * 9_000 + "b a"
    found = [each for each in LinePattern(pattern, literal=False, ignore_case=False).matches(text) if each]
    lines = text.split("\n")
    assert [each.number for each in found] == [
        number for number, line in enumerate(lines, 1) if re.search(pattern, line)
    ]
    assert [text[each.start : each.end] for each in found] == [lines[each.number - 1] for each in found]


def test_of_a_long_line_the_part_around_the_match_is_shown() -> None:
    text = "x" * 5_000 + "needle" + "x" * 5_000
    (line,) = (each for each in LinePattern("needle", literal=True, ignore_case=False).matches(text) if each)
    start, end = shown(line)
    assert "needle" in text[start:end] and end - start == 400

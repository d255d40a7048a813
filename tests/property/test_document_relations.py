"""Random stores of documents that claim to supersede others.

What a person sees is that of a store without everything that the person may not read. What holds among
documents of some level is that of a store without all less trusted ones.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.model.access import Person, Principal
from conspectus.model.trust import HIGHEST, TRUST, Origin

SETTINGS = replace(Settings(), embedder="none")
SOURCES = ("a", "b", "c")
ORIGINS: tuple[Origin, ...] = ("user", "import", "web")
NAMES = ("one", "two", "three", "four v1", "four v2")
STATEMENTS = ("Supersedes: {}", "Superseded-By: {}", "This page is deprecated, see {}.md.", "Updates: {}")
DOCUMENTS = 12

Seen = Mapping[tuple[str, str], frozenset[str]]
"""The successors of each superseded document, by its source and key."""


@dataclass(frozen=True)
class Page:
    """A page of a history: where it stands, who wrote it, and what it says."""

    source: str
    key: str
    writer: str
    origin: Origin
    text: str


def make_pages(chance: random.Random) -> list[Page]:
    pages = {}
    for _ in range(DOCUMENTS):
        writer = chance.choice(("owner", "bob"))
        source = chance.choice(SOURCES[:2] if writer == "bob" else SOURCES)
        key = f"{chance.choice(NAMES)}.{chance.choice(('md', 'txt'))}"
        stated = chance.choice(STATEMENTS).format(chance.choice(NAMES))
        pages[source, key] = Page(source, key, writer, chance.choice(ORIGINS), f"{stated}\n\noffice")
    return list(pages.values())


async def fill(engine: Engine, pages: list[Page]) -> dict[str, Engine]:
    """Add pages, in which bob may edit the first two sources, and carol reads the last two."""
    people = {"owner": engine}
    for source in SOURCES:
        await engine.collections.get_or_create_source(source)
    for name, role, sources in (("bob", "editor", SOURCES[:2]), ("carol", "viewer", SOURCES[1:])):
        user = await engine.people.create_user(name)
        for source in sources:
            await engine.access.grant("default", Principal("user", user.id), role, source=source)  # type: ignore[arg-type]
        people[name] = engine.as_person(Person(user.name, user.owner, user.id))
    for page in pages:
        new = NewDocument(page.text, key=page.key, origin=page.origin)
        await people[page.writer].add(new, source=page.source)
    return people


async def see(engine: Engine) -> Seen:
    """The successors of documents, by names that are the same in every store."""
    hits = (await engine.retrieve("office", limit=100)).hits
    names = {source.id: source.name for source in (await engine.collections.list_sources())}
    return {
        (names[hit.document.source], hit.document.key): frozenset(
            successor.name for successor in hit.superseded_by
        )
        for hit in hits
        if hit.superseded_by
    }


async def see_among(folder: Path, pages: list[Page], allowed: Callable[[Page], bool], who: str) -> Seen:
    async with conspectus.open(folder, settings=SETTINGS) as engine:
        people = await fill(engine, [page for page in pages if allowed(page)])
        return await see(people[who])


@pytest.mark.parametrize("seed", range(3))
async def test_nobody_gains_by_what_is_hidden_or_less_trusted(seed: int, tmp_path: Path) -> None:
    pages = make_pages(random.Random(seed))
    levels = {(page.source, page.key): TRUST.index(HIGHEST[page.origin]) for page in pages}
    async with conspectus.open(tmp_path / "all", settings=SETTINGS) as engine:
        people = await fill(engine, pages)
        everything, seen_by_carol = await see(engine), await see(people["carol"])
    assert seen_by_carol == await see_among(
        tmp_path / "readable", pages, lambda page: page.source in SOURCES[1:], "carol"
    )
    for lowest in range(2):
        among = await see_among(
            tmp_path / f"level {lowest}",
            pages,
            lambda page: levels[page.source, page.key] <= lowest,  # noqa: B023
            "owner",
        )
        assert {
            page: successors for page, successors in everything.items() if levels[page] <= lowest
        } == among

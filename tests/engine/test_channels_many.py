"""Reads of the database for a message and for a query, in a collection of a thousand channels."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as Database
from sqlalchemy import event

import conspectus
from conspectus import Engine, Settings
from conspectus.model.access import Person, Principal
from conspectus.model.channels import NewMessage
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical")
CHANNELS = 1_000


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        yield engine


@contextmanager
def record_statements() -> Iterator[list[str]]:
    """What the database is asked meanwhile."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(Database, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Database, "before_cursor_execute", note)


def count_listings(statements_seen: list[str]) -> int:
    """How often all sources were read."""
    of_sources = [
        statement
        for statement in statements_seen
        if "FROM sources" in statement and "ORDER BY sources.name" in statement
    ]
    return sum("sources.name = " not in statement for statement in of_sources)


async def test_a_thousand_channels_are_read_once_at_most(engine: Engine) -> None:
    for number in range(CHANNELS):
        await engine.collections.get_or_create_source(f"channel {number}", kind="channel")
    for number in range(5):
        message = NewMessage(f"the deploy failed, {number}", key="1")
        await engine.channels.add_messages(message, channel=f"channel {number}", wait=True)
    with record_statements() as seen:
        await engine.channels.add_messages(NewMessage("did it?", key="2", reply_to="1"), channel="channel 1")
    assert count_listings(seen) == 0
    question = {"query": "why did the deploy fail?", "channel": "channel 1", "min_similarity": 0.0}
    for related in (False, True):
        with record_statements() as seen:
            window = await engine.channels.window(max_tokens=4_000, **question, related=related)
        assert count_listings(seen) == int(related)
        assert len(window.channels) == (4 if related else 1)


async def test_who_sees_many_of_them_is_answered_within_those(engine: Engine) -> None:
    ann = await engine.people.create_user("ann")
    for number in range(60):
        source = await engine.collections.get_or_create_source(f"channel {number}", kind="channel")
        await engine.channels.add_messages(
            NewMessage(f"the deploy failed, {number}", key="1"), channel=source.id
        )
        if number % 2:
            await engine.access.grant("default", Principal("user", ann.id), "viewer", source=source.id)
    await engine.documents.wait_until_embedded()
    theirs = engine.as_person(Person("ann", id=ann.id))
    question = {
        "query": "why did the deploy fail?",
        "channel": "channel 1",
        "related": True,
        "min_similarity": 0.0,
    }
    window = await theirs.channels.window(max_tokens=4_000, **question)
    assert len(window.channels) == 4
    assert all(int(name.split()[1]) % 2 for name in window.channels)


async def test_sources_that_are_no_channels_are_not_related(engine: Engine) -> None:
    await engine.channels.add_messages(NewMessage("the deploy failed", key="1"), channel="here", wait=True)
    await engine.collections.get_or_create_source("notes")
    await engine.channels.add_messages(
        NewMessage("the deploy failed in the notes", key="1"), channel="notes", wait=True
    )
    question = {
        "query": "why did the deploy fail?",
        "channel": "here",
        "related": True,
        "min_similarity": 0.0,
    }
    assert (await engine.channels.window(max_tokens=4_000, **question)).channels == ("here",)


async def test_one_message_costs_a_few_reads(tmp_path: Path) -> None:
    talk = [NewMessage(f"note {number}", key=str(number)) for number in range(60)]
    async with conspectus.open(tmp_path / "words", settings=replace(SETTINGS, embedder="none")) as engine:
        await engine.channels.add_messages(talk, channel="here")
        with record_statements() as linked:
            await engine.channels.add_messages(NewMessage("told", key="a", reply_to="3"), channel="here")
        with record_statements() as guessed:
            await engine.channels.add_messages(NewMessage("guessed", key="b"), channel="here")
    assert linked.count("BEGIN") + linked.count("BEGIN IMMEDIATE") <= 8
    assert guessed.count("BEGIN") - linked.count("BEGIN") == 1

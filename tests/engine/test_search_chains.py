"""Context chains as a user meets them: over the real store, its permissions, collections and deletions."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.engine_samples import untimed
from tests.support.samples import NOON
from tests.support.served import served

import conspectus
from conspectus import Engine, Eq, NewDocument, Not, Settings
from conspectus.errors import InvalidInput
from conspectus.model.access import Person, Principal
from conspectus.web.app import application

API_KEY = (
    "How do I set up my API key?",
    "Go to settings.",
    "I don't see it in settings.",
    "It's under Developer Settings > API Keys.",
)


def build_message(
    number: int, text: str, *, thread: str = "0", answers: int | None = None, author: str = "Ada"
) -> NewDocument:
    return NewDocument(
        text,
        kind="message",
        key=str(number),
        author=author,
        thread=thread,
        occurred=NOON + timedelta(minutes=number),
        metadata={} if answers is None else {"reply_to": str(answers)},
    )


def build_thread(texts: tuple[str, ...] = API_KEY, **fields: str) -> list[NewDocument]:
    """Each message answers the one before it."""
    return [
        build_message(number, text, answers=number - 1 if number else None, **fields)
        for number, text in enumerate(texts)
    ]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none", max_thread_chunks=9)) as opened:
        yield opened


async def test_the_fourth_message_comes_with_what_it_answers(engine: Engine) -> None:
    await engine.add(build_thread(), source="help")
    alone = await engine.retrieve("developer keys", limit=1)
    retrieval = await engine.retrieve("developer keys", limit=1, thread_messages=8)
    assert [hit.chunk.text for hit in alone.hits] == [API_KEY[3]]
    assert [hit.chunk.text for hit in retrieval.hits] == [API_KEY[number] for number in (3, 2, 0, 1)]
    assert [hit.along_with for hit in retrieval.hits] == [None, *[alone.hits[0].chunk.id] * 3]
    assert "chains" in retrieval.timings
    window = await engine.window("developer keys", 200, limit=1, thread_messages=8)
    assert [window.text.index(text) for text in API_KEY] == sorted(
        window.text.index(text) for text in API_KEY
    )


async def test_of_a_window_with_a_long_thread_nothing_is_lost_count_of(engine: Engine) -> None:
    """Longer than what is read of a thread; some of the messages are in no way special."""
    texts = [
        "Who took the heron's egg?",
        *(f"No idea, says bird number {number}." for number in range(1, 40)),
    ]
    texts[20] = "The magpie took the zircon."
    await engine.add([build_message(number, text) for number, text in enumerate(texts)], source="birds")
    window = await engine.window("zircon", 300, limit=1, thread_messages=6)
    assert len(window.citations) == 7
    left_out = [int(line.split()[1]) for line in window.text.split("\n") if line.startswith("[…")]
    assert sum(left_out) == 40 - 7
    assert window.text.startswith("[1] 2024-05-01 Ada: Who took")
    assert "magpie" in window.text and window.text.endswith("number 39.")


async def test_a_deleted_parent_leaves_the_rest_of_the_thread(engine: Engine) -> None:
    written = await engine.add(build_thread(), source="help")
    await engine.documents.delete(written[2].id)
    retrieval = await engine.retrieve("developer keys", limit=1, thread_messages=8)
    assert [hit.document.key for hit in retrieval.hits] == ["3", "1", "0"]
    assert retrieval.threads[0].total == 3


async def test_a_chain_shows_nothing_that_is_hidden(engine: Engine) -> None:
    """Neither by permission, where a reply names a message of another channel, nor by the filter."""
    people = {name: await engine.people.create_user(name) for name in ("alice", "bob")}
    alice, bob = (engine.as_person(Person(user.name, False, user.id)) for user in people.values())
    await alice.add(build_message(0, "a secret plum"), source="hidden", collection="wiki")
    await alice.add(build_thread()[1:], source="open", collection="wiki")
    await alice.access.grant("wiki", Principal("user", people["bob"].id), "viewer", source="open")
    retrieval = await bob.retrieve("developer keys", collection="alice/wiki", limit=1, thread_messages=8)
    assert [hit.document.key for hit in retrieval.hits] == ["3", "2", "1"]
    named = Not(Eq(("reply_to",), "1"))
    retrieval = await bob.retrieve(
        "developer keys", collection="alice/wiki", limit=1, thread_messages=8, filter=named
    )
    assert [hit.document.key for hit in retrieval.hits] == ["3", "1"]
    assert retrieval.threads[0].total == 3


async def test_chains_over_all_collections(engine: Engine) -> None:
    for name in ("one", "two"):
        await engine.add(build_thread(), source="help", collection=name)
    retrieval = await engine.retrieve("developer keys", collection="*", limit=2, thread_messages=1)
    assert sorted(hit.document.key for hit in retrieval.hits) == ["2", "2", "3", "3"]
    assert len({hit.document.collection for hit in retrieval.hits}) == 2
    assert len(retrieval.threads) == 2


async def test_chains_come_over_http_as_they_are(engine: Engine) -> None:
    await engine.add(build_thread(), source="help")
    first = await engine.keys.create_first()
    assert first is not None
    quiet = Settings(log_level="critical")
    async with (
        served(application(engine, quiet)) as url,
        conspectus.connect(url, api_key=first.secret, settings=quiet) as remote,
    ):
        far, near = [
            await client.retrieve("developer keys", limit=1, thread_messages=8) for client in (remote, engine)
        ]
        assert untimed(far) == untimed(near)
        assert far.threads[0].total == 4
        windows = [
            await client.window("developer keys", 90, limit=1, thread_messages=1)
            for client in (remote, engine)
        ]
        assert windows[0].text == windows[1].text
        assert "[… 2 messages left out]" in windows[0].text


@pytest.mark.parametrize("chain", [-1, 101])
async def test_a_chain_of_no_possible_length_is_refused(engine: Engine, chain: int) -> None:
    with pytest.raises(InvalidInput, match="thread_messages"):
        await engine.retrieve("anything", thread_messages=chain)


async def test_nothing_found_brings_nothing(engine: Engine) -> None:
    await engine.add(build_thread(), source="help")
    for question in ("xylophone", ""):
        retrieval = await engine.retrieve(question, thread_messages=8)
        assert (retrieval.outcome, retrieval.hits, retrieval.threads) == ("no_match", (), ())

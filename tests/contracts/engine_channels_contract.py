"""What every engine must do with channels."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import InvalidInput, NotFound, UnreadableFile
from conspectus.model.channels import REPLY_TO, NewMessage
from conspectus.model.jobs import Upload
from conspectus.text.times import parse_instant
from tests.support.engine_samples import AnyEngine, untimed

NOON = "2026-03-02T12:00:00Z"
TALK = [
    NewMessage("How do I set up my API key?", key="1", author="ann", at=NOON),
    NewMessage("Go to settings", key="2", author="bo", at="2026-03-02T12:01:00Z", reply_to="1"),
    NewMessage("I don't see it in settings", key="3", author="ann", at="2026-03-02T12:02:00Z", reply_to="2"),
    NewMessage(
        "It's under Developer Settings > API Keys",
        key="4",
        author="bo",
        at="2026-03-02T12:03:00Z",
        reply_to="3",
        metadata={"edited": False},
    ),
]
ASKED: dict[str, Any] = {
    "query": "where are the API keys?",
    "channel": "help",
    "at": parse_instant("2026-03-02T13:00:00Z"),
    "min_similarity": 0.0,
}


class ChannelsContract:
    """Messages, chains and windows of channels: the same, whoever is asked."""

    async def test_messages_keep_what_was_said_of_them(self, engine: AnyEngine) -> None:
        """Who said it, when, in which thread, and what it answers."""
        await engine.channels.add_messages(TALK, channel="help", wait=True)
        messages = await engine.channels.list_messages(channel="help")
        assert [message.text for message in messages] == [message.text for message in TALK]
        assert {message.document.thread for message in messages} == {"1"}
        last = messages[-1].document
        assert (last.author, last.key, last.metadata) == ("bo", "4", {"edited": False, REPLY_TO: "3"})
        assert last.occurred is not None
        assert last.occurred.start == parse_instant("2026-03-02T12:03:00Z")
        assert (await engine.documents.get_by_key("4", source="help")) == last

    async def test_earlier_messages_come_page_by_page(self, engine: AnyEngine) -> None:
        """Before a message of the same channel; one of another channel is not found there."""
        await engine.channels.add_messages(TALK, channel="help")
        await engine.channels.add_messages(TALK, channel="elsewhere")
        messages = await engine.channels.list_messages(channel="help", limit=2)
        assert [message.document.key for message in messages] == [message.key for message in TALK[-2:]]
        earlier = await engine.channels.list_messages(channel="help", before=messages[0].document.id)
        assert [message.document.key for message in earlier] == [message.key for message in TALK[:-2]]
        [other, *_] = await engine.channels.list_messages(channel="elsewhere")
        with pytest.raises(NotFound):
            await engine.channels.list_messages(channel="help", before=other.document.id)

    async def test_a_message_of_a_known_key_is_an_edit(self, engine: AnyEngine) -> None:
        """The new text is found and the old one is not; its thread stays."""
        await engine.channels.add_messages(TALK, channel="help", wait=True)
        changed = replace(TALK[1], text="Open the cogwheel menu", at=None, reply_to=None)
        [written] = await engine.channels.add_messages(changed, channel="help", wait=True)
        assert written.outcome == "replaced"
        stored = await engine.documents.get(written.id)
        assert stored.thread == "1"
        assert stored.occurred is not None
        assert stored.occurred.start == parse_instant("2026-03-02T12:01:00Z")
        retrieval = await engine.retrieve("cogwheel", retrievers=("keyword",))
        assert [hit.document.key for hit in retrieval.hits if hit.bm25] == ["2"]

    async def test_deleting_a_message_leaves_what_was_answered(self, engine: AnyEngine) -> None:
        """Also where it is the first of its thread."""
        await engine.channels.add_messages(TALK, channel="help")
        first = await engine.documents.get_by_key("1", source="help")
        assert (await engine.documents.delete(first.id)).documents == 1
        fourth = await engine.documents.get_by_key("4", source="help")
        chain = await engine.channels.get_reply_chain(fourth.id)
        assert [message.document.key for message in chain.messages] == ["2", "3", "4"]
        assert chain.message == fourth.id

    async def test_a_chain_is_cut_to_its_limit_and_says_so(self, engine: AnyEngine) -> None:
        """The message itself is always in it."""
        await engine.channels.add_messages(TALK, channel="help")
        fourth = await engine.documents.get_by_key("4", source="help")
        chain = await engine.channels.get_reply_chain(fourth.id, limit=2)
        assert fourth.id in {message.document.id for message in chain.messages}
        assert (len(chain.messages), chain.left_out) == (2, 2)
        for limit in (0, 100_000):
            with pytest.raises(InvalidInput):
                await engine.channels.get_reply_chain(fourth.id, limit=limit)

    async def test_windows_are_the_same_everywhere(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Byte for byte, never over the budget, and with the whole thread where there is room."""
        await engine.channels.add_messages(TALK, channel="help", wait=True)
        await engine.channels.add_messages(
            NewMessage("lunch?", author="cy", at=NOON), channel="random", wait=True
        )
        for tokens in (0, 30, 4_000):
            there = await engine.channels.window(max_tokens=tokens, **ASKED)
            here = await local.channels.window(max_tokens=tokens, **ASKED)
            assert untimed(there.window) == untimed(here.window)
            assert (there.messages, there.tokens, there.channels) == (
                here.messages,
                here.tokens,
                here.channels,
            )
            assert there.tokens <= tokens
        assert [message.key for message in there.messages] == ["1", "2", "3", "4"]
        assert [message.text for message in there.messages] == [message.text for message in TALK]
        assert {message.channel for message in there.messages} == {"help"}
        scores = {entry.document: entry.score for entry in reversed(there.window.trace)}
        assert [message.score for message in there.messages] == [
            scores[message.id] for message in there.messages
        ]
        assert there.channels == ("help",)

    async def test_a_channel_window_begins_with_the_previous_one(self, engine: AnyEngine) -> None:
        """With its messages of this channel, and those that a new query adds."""
        await engine.channels.add_messages(TALK, channel="help", wait=True)
        fields = {**ASKED, "thread_messages": 0, "max_tokens": 400}
        first = (await engine.channels.window(**fields, parts=True)).window
        assert sum(part.tokens for part in first.parts) == 400
        await engine.channels.add_messages(
            NewMessage("The parrot eats nuts.", key="5", author="cy", at=NOON), channel="help", wait=True
        )
        parrot = {**fields, "query": "what does the parrot eat?", "previous": first.state}
        window = (await engine.channels.window(**parrot)).window
        assert window.cache_plan is not None and window.cache_plan.stable_tokens > 0
        assert "parrot" in window.text.removeprefix(window.text[: window.cache_plan.stable_characters])
        await engine.channels.add_messages(TALK[0], channel="other", wait=True)
        elsewhere = (await engine.channels.window(**{**parrot, "channel": "other"})).window
        assert "parrot" not in elsewhere.text

    async def test_messages_below_the_minimum_confidence_are_not_found(self, engine: AnyEngine) -> None:
        """And says so."""
        await engine.channels.add_messages(TALK, channel="help", wait=True)
        window = await engine.channels.window(max_tokens=400, **{**ASKED, "min_confidence": 0.999})
        assert (window.window.outcome, window.messages) == ("no_match", ())
        assert "below the minimum" in window.window.notices[-1]

    async def test_channels_and_messages_that_do_not_exist_are_not_found(self, engine: AnyEngine) -> None:
        """A channel, a message, a document."""
        await engine.channels.add_messages(TALK[0], channel="help")
        with pytest.raises(NotFound):
            await engine.channels.list_messages(channel="nowhere")
        with pytest.raises(NotFound):
            await engine.documents.get_by_key("99", source="help")
        with pytest.raises(NotFound):
            await engine.channels.get_reply_chain("nothing")
        with pytest.raises(NotFound):
            await engine.channels.window(max_tokens=100, **{**ASKED, "channel": "nowhere"})

    async def test_an_archive_is_taken_in_once(self, engine: AnyEngine, tmp_path: Path) -> None:
        """From a path or as a file handed in; what cannot be read is an error."""
        rows = [{"channel": "ops", "id": str(n), "author": "ann", "text": f"note {n}"} for n in range(7)]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / "log.jsonl").write_text(text)
        first = await engine.channels.import_archive(tmp_path / "log.jsonl", kind="jsonl")
        assert (first.channels, first.added, first.unchanged) == ({"ops": 7}, 7, 0)
        again = await engine.channels.import_archive(Upload("log.jsonl", text.encode()), kind="jsonl")
        assert (again.added, again.replaced, again.unchanged) == (0, 0, 7)
        stored = await engine.documents.list()
        by_place = sorted(stored.documents, key=lambda document: document.sequence or 0)
        assert [document.key for document in by_place] == [str(n) for n in range(7)]
        with pytest.raises(UnreadableFile):
            await engine.channels.import_archive(tmp_path / "nothing.zip")

    async def test_edits_and_deletions_of_a_newer_archive_are_obeyed(
        self, engine: AnyEngine, tmp_path: Path
    ) -> None:
        rows: list[dict[str, object]] = [
            {
                "channel": "ops",
                "id": str(n),
                "author": "ann",
                "text": f"note {n}",
                "at": f"2024-01-0{n}T10:00:00Z",
            }
            for n in range(1, 5)
        ]
        first = "\n".join(map(json.dumps, rows))
        await engine.channels.import_archive(Upload("log.jsonl", first.encode()), kind="jsonl")
        changes = [
            {**rows[1], "text": "edited", "edited": "2024-01-05T10:00:00Z"},
            {**rows[2], "deleted": True},
        ]
        newer = "\n".join(map(json.dumps, [*rows, *changes]))
        report = await engine.channels.import_archive(Upload("log.jsonl", newer.encode()), kind="jsonl")
        assert (report.added, report.replaced, report.unchanged, report.deleted) == (0, 1, 2, 1)
        assert report.notices == ("messages deleted on the platform, skipped: 1 (log.jsonl:6)",)
        texts = {message.text for message in await engine.channels.list_messages(channel="ops")}
        assert texts == {"note 1", "edited", "note 4"}
        again = await engine.channels.import_archive(Upload("log.jsonl", newer.encode()), kind="jsonl")
        assert (again.unchanged, again.deleted) == (3, 0)

    async def test_replies_are_inferred_only_where_none_is_stated(self, engine: AnyEngine) -> None:
        """In an archive whose messages name what they answer, a line that names nothing answers nothing."""
        rows: list[dict[str, object]] = [
            {"channel": "ops", "id": "1", "author": "ann", "text": "Did the nightly backup run?"},
            {"channel": "ops", "id": "2", "author": "bob", "text": "ann: yes, the backup ran at two."},
        ]
        text = "\n".join(map(json.dumps, rows))
        await engine.channels.import_archive(Upload("log.jsonl", text.encode()), kind="jsonl")
        _, guess = await engine.channels.list_messages(channel="ops")
        assert guess.inferred
        assert guess.document.metadata["answers"] == "1"
        stated = [{**row, "channel": "dev"} for row in rows]
        stated += [{"channel": "dev", "id": "3", "author": "cy", "text": "Thanks.", "reply_to": "2"}]
        text = "\n".join(map(json.dumps, stated))
        await engine.channels.import_archive(Upload("log.jsonl", text.encode()), kind="jsonl")
        messages = await engine.channels.list_messages(channel="dev")
        assert [message.inferred for message in messages] == [False] * 3
        assert messages[1].document.metadata.get("answers") is None
        later = NewMessage("ann: the backup ran again.", key="4", author="bob")
        await engine.channels.add_messages(later, channel="dev")
        assert not (await engine.channels.list_messages(channel="dev"))[-1].inferred

    async def test_members_of_private_channels_get_a_role_on_request(
        self, engine: AnyEngine, tmp_path: Path
    ) -> None:
        """By e-mail or handle; a display name is chosen by anybody."""
        users = [
            {"id": "U1", "name": "ann", "profile": {"email": "ann@example.org", "display_name": "Boss"}},
            {"id": "U2", "name": "bob", "profile": {"display_name": "Boss"}},
            {"id": "U3", "name": "cy", "profile": {}},
        ]
        private = {"id": "G1", "name": "secret", "members": ["U1", "U2", "U3"]}
        said = {
            "type": "message",
            "user": "U1",
            "text": "The key is under the mat.",
            "ts": "1704450000.000100",
        }
        files = {"users.json": users, "groups.json": [private], "secret/2024-01-05.json": [said]}
        with zipfile.ZipFile(tmp_path / "team.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, json.dumps(content))
        for name in ("ann@example.org", "bob", "Boss"):
            await engine.people.create_user(name)
        plain = await engine.channels.import_archive(tmp_path / "team.zip")
        assert await engine.access.list_grants("default", source="secret") == []
        report = await engine.channels.import_archive(tmp_path / "team.zip", grant_members=True)
        assert report.notices == (
            *plain.notices,
            "2 members of private channels may read them; without an account: cy",
        )
        grants = await engine.access.list_grants("default", source="secret")
        accounts = {str(user.id): user.name for user in await engine.people.list_users()}
        readers = {(accounts[grant.grantee.id], grant.role) for grant in grants}
        assert readers == {("ann@example.org", "viewer"), ("bob", "viewer")}

"""Documents of messages: their threads, times and parents."""

from datetime import UTC, datetime, timedelta

from conspectus.ingest.messages import Threading, in_order
from conspectus.model.channels import ANSWERS, ANSWERS_CONFIDENCE, REPLY_TO, NewMessage
from conspectus.model.records import Document, NewDocument, Period
from conspectus.text.replies import Linker

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def make_documents(
    *messages: NewMessage, linker: Linker | None = None, **stored: Document
) -> list[NewDocument]:
    return Threading(linker, NOW).documents(messages, stored)


def stored_document(key: str, **fields: object) -> Document:
    base = Document(
        id=key,
        collection="c",
        source="s",
        kind="message",
        key=key,
        title="",
        content_hash="",
        fingerprint="",
        recorded=NOW,
        updated=NOW,
        occurred=Period(NOW - timedelta(days=1), NOW - timedelta(days=1)),
    )
    return Document(**{**{name: getattr(base, name) for name in Document.__slots__}, **fields})


def test_a_message_that_answers_nothing_begins_a_thread_of_its_own() -> None:
    [alone] = make_documents(NewMessage("hello", key="7"))
    assert (alone.thread, alone.metadata, alone.kind) == ("7", {}, "message")


def test_replies_stand_in_the_thread_of_what_they_answer() -> None:
    one, two, three = make_documents(
        NewMessage("a", key="1"),
        NewMessage("b", key="2", reply_to="1"),
        NewMessage("c", key="3", reply_to="2"),
    )
    assert [message_document.thread for message_document in (one, two, three)] == ["1", "1", "1"]
    assert three.metadata == {REPLY_TO: "2"}


def test_a_reply_to_what_was_stored_before_joins_its_thread() -> None:
    [reply] = make_documents(
        NewMessage("b", key="2", reply_to="1"), **{"1": stored_document("1", thread="0")}
    )
    assert reply.thread == "0"


def test_a_reply_to_what_nobody_knows_names_it() -> None:
    [reply] = make_documents(NewMessage("b", key="2", reply_to="gone"))
    assert (reply.thread, reply.metadata) == ("gone", {REPLY_TO: "gone"})


def test_the_thread_of_the_platform_counts() -> None:
    root, reply = make_documents(NewMessage("a", key="1", thread="1"), NewMessage("b", key="2", thread="1"))
    assert (root.thread, reply.thread) == ("1", "1")


def test_a_message_that_answers_itself_is_no_loop() -> None:
    [odd] = make_documents(NewMessage("a", key="1", reply_to="1"), linker=Linker())
    assert odd.thread == "1"


def test_times_are_the_messages_own_else_those_stored_else_now() -> None:
    dated, edited, new, numbered = make_documents(
        NewMessage("a", key="1", at="2026-01-01T00:00:00Z"),
        NewMessage("b", key="2"),
        NewMessage("c", key="3"),
        NewMessage("d", key="4", sequence=3),
        **{"2": stored_document("2")},
    )
    assert dated.occurred == Period(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    assert edited.occurred == stored_document("2").occurred
    assert new.occurred == Period(NOW, NOW)
    assert (numbered.occurred, numbered.sequence) == (None, 3)


def test_an_edit_keeps_the_thread_that_was_found_before() -> None:
    [edited] = make_documents(
        NewMessage("something else entirely", key="2"),
        linker=Linker(),
        **{"2": stored_document("2", thread="0", metadata={ANSWERS: "0", ANSWERS_CONFIDENCE: 0.7})},
    )
    assert (edited.thread, edited.metadata) == ("0", {ANSWERS: "0", ANSWERS_CONFIDENCE: 0.7})
    [stated] = make_documents(
        NewMessage("x", key="2", reply_to="5"), **{"2": stored_document("2", metadata=edited.metadata)}
    )
    assert stated.metadata == {REPLY_TO: "5"}


def test_what_a_message_answers_is_found_where_nobody_says() -> None:
    question, other, answer = make_documents(
        NewMessage("how do I restart the billing service?", key="1", author="ann", at=NOW),
        NewMessage("hello everyone", key="2", author="cy", at=NOW + timedelta(seconds=20)),
        NewMessage(
            "ann: run systemctl restart billing", key="3", author="bo", at=NOW + timedelta(seconds=40)
        ),
        linker=Linker(),
    )
    assert (question.thread, other.thread) == ("1", "2")
    assert (answer.thread, answer.metadata[ANSWERS]) == ("1", "1")
    assert 0.5 < float(str(answer.metadata[ANSWERS_CONFIDENCE])) <= 1


def test_unstorable_characters_in_keys_meet_again() -> None:
    one, two = make_documents(NewMessage("a", key="\ud800"), NewMessage("b", key="2", reply_to="\ud800"))
    assert two.thread == one.thread == one.key


def test_messages_of_the_same_minute_keep_their_order() -> None:
    messages = [NewMessage(str(n), at=NOW + timedelta(minutes=n // 3)) for n in range(7)]
    times = [message.at for message in in_order(messages)]
    assert times == sorted(set(times))
    assert times[4] == NOW + timedelta(minutes=1, microseconds=1)


def test_messages_of_which_some_have_no_time_are_numbered() -> None:
    messages = [NewMessage("a", at=NOW), NewMessage("b"), NewMessage("c", at=NOW - timedelta(days=1))]
    assert [message.sequence for message in in_order(messages)] == [0, 1, 2]


def test_an_edit_keeps_what_it_does_not_tell() -> None:
    before = stored_document(
        "2", thread="0", author="ann", role="bot", sequence=7, metadata={REPLY_TO: "1", "pinned": True}
    )
    [edited] = make_documents(NewMessage("new text", key="2"), **{"2": before})
    assert (edited.author, edited.role, edited.sequence) == ("ann", "bot", 7)
    assert (edited.thread, edited.metadata) == ("0", before.metadata)
    [replaced] = make_documents(
        NewMessage("x", key="2", author="bo", reply_to="5", metadata={"a": 1}), **{"2": before}
    )
    assert (replaced.author, replaced.metadata) == ("bo", {"a": 1, REPLY_TO: "5"})


def test_a_message_that_gets_a_time_is_ordered_by_it() -> None:
    [dated] = make_documents(NewMessage("x", key="2", at=NOW), **{"2": stored_document("2", sequence=7)})
    assert (dated.sequence, dated.occurred) == (None, Period(NOW, NOW))


def test_a_message_that_is_edited_at_once_is_an_edit() -> None:
    first, second = make_documents(
        NewMessage("a", key="1", author="ann", reply_to="0"), NewMessage("b", key="1"), linker=Linker()
    )
    assert (second.author, second.thread, second.metadata) == ("ann", first.thread, first.metadata)


def test_what_follows_a_moved_message_moves_with_it() -> None:
    begun, follower = make_documents(
        NewMessage("a", key="1", thread="1"),
        NewMessage("b", key="2"),
        linker=Linker(),
        **{
            "1": stored_document("1", thread="0", metadata={ANSWERS: "0"}),
            "2": stored_document("2", thread="0", metadata={ANSWERS: "1"}),
        },
    )
    assert (begun.thread, begun.metadata) == ("1", {})
    assert (follower.thread, follower.metadata) == ("1", {ANSWERS: "1"})


def test_a_thread_that_is_called_like_a_message_is_that_messages() -> None:
    [reply] = make_documents(NewMessage("b", key="2", thread="1"), **{"1": stored_document("1", thread="0")})
    assert reply.thread == "0"


def test_a_reply_that_comes_before_what_it_answers_meets_it() -> None:
    early, late = make_documents(
        NewMessage("b", key="2", reply_to="1"), NewMessage("a", key="1"), linker=Linker()
    )
    assert early.thread == late.thread == "1"


def test_messages_that_answer_each_other_in_a_circle_are_one_thread() -> None:
    circle = [NewMessage("x", key=str(n), reply_to=str((n + 1) % 3)) for n in range(3)]
    assert len({document.thread for document in make_documents(*circle, linker=Linker())}) == 1


def test_names_that_are_empty_name_nothing() -> None:
    [message] = make_documents(NewMessage("a", key="1", reply_to="", thread=""))
    assert (message.thread, message.metadata) == ("1", {})


def test_only_what_is_not_told_is_guessed() -> None:
    stored = {"1": stored_document("1")}
    messages = [NewMessage("a", key="1"), NewMessage("b", reply_to="1"), NewMessage("c", thread="1")]
    assert not Threading(Linker(), NOW).guesses(messages, stored)
    assert Threading(Linker(), NOW).guesses([*messages, NewMessage("d", key="4")], stored)
    assert not Threading(None, NOW).guesses([NewMessage("d")], {})

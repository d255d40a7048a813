"""Links between messages: properties that hold for any text, and links that are certain."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput
from conspectus.text.replies import Linker, Utterance

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TEXTS = st.text(max_size=60) | st.sampled_from(
    ["", "@", ":", "bob:", "@bob hi", "bob", "you: no", "!ping", "=== x", "\ud800", "\x00", "bob,bob"]
)
AUTHORS = st.none() | st.text(max_size=8) | st.sampled_from(["bob", "Bob", "you", "Mary Ann", "@x:", ""])
TIMES = st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC))
UTTERANCES = st.builds(Utterance, AUTHORS, TEXTS, TIMES, st.booleans())


def utter(author: str | None, text: str, second: float | None = None) -> Utterance:
    return Utterance(author, text, None if second is None else NOON + timedelta(seconds=second))


def link_all(utterances: Sequence[Utterance], linker: Linker | None = None) -> list[str | None]:
    linker = linker or Linker()
    return [linker.link(str(position), utterance) for position, utterance in enumerate(utterances)]


@given(st.lists(UTTERANCES, max_size=25), st.integers(1, 8))
def test_whatever_is_said_only_remembered_messages_are_answered(
    utterances: list[Utterance], memory: int
) -> None:
    linker = Linker(memory=memory)
    roots: dict[str, str] = {}
    for position, utterance in enumerate(utterances):
        key = str(position)
        answers = linker.link(key, utterance)
        assert answers is None or (answers in list(roots)[-memory:] and not utterance.system)
        assert linker.thread_of(key) == (key if answers is None else roots[answers])
        if not utterance.system:
            roots[key] = linker.thread_of(key)


@given(st.lists(UTTERANCES, min_size=1, max_size=15), st.data())
def test_what_comes_later_changes_nothing(utterances: list[Utterance], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(utterances)))
    assert link_all(utterances)[:cut] == link_all(utterances[:cut])


@given(st.lists(UTTERANCES, min_size=2, max_size=12), st.data())
def test_what_is_known_is_kept(utterances: list[Utterance], data: st.DataObject) -> None:
    linker = Linker()
    for position, utterance in enumerate(utterances):
        parent = data.draw(st.none() | st.integers(0, position).map(str) | st.just("elsewhere"))
        answers = linker.link(str(position), utterance, answers=parent)
        if parent is not None and parent != str(position):
            assert answers == parent
            if not utterance.system:
                assert linker.thread_of(str(position)) == linker.thread_of(parent)


def test_a_name_at_the_beginning_tells_whom_it_answers() -> None:
    messages = [
        utter("ann", "how do I mount a disk?", 0),
        utter("bob", "does anybody know a good editor?", 20),
        utter("cat", "ann: with the command mount", 60),
        utter("dan", "@bob: try vim", 70),
        utter("Mary Ann", "bob, emacs", 80),
        utter("bob", "Mary Ann: is that free?", 95),
        utter("ann", "cat: thanks, that works", 100),
    ]
    assert link_all(messages) == [None, None, "0", "1", "1", "4", "2"]


def test_two_exchanges_at_once_stay_apart() -> None:
    messages = [utter("bob", "the new disks are here", -172_800), utter("dan", "the backup is done", -86_400)]
    for turn in range(6):
        messages += [
            utter("ann", f"bob: my printer prints page {turn}", 40 * turn),
            utter("cat", f"dan: the router drops packet {turn}", 40 * turn + 10),
            utter("bob", f"ann: which printer driver {turn}?", 40 * turn + 20),
            utter("dan", f"cat: which router firmware {turn}?", 40 * turn + 30),
        ]
    linker = Linker()
    link_all(messages, linker)
    threads = [linker.thread_of(str(position)) for position in range(2, len(messages))]
    first, second = set(threads[0::4] + threads[2::4]), set(threads[1::4] + threads[3::4])
    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.parametrize("name", ["you", "usual", "no", "it"])
def test_a_name_that_is_a_word_does_not_draw_every_message(name: str) -> None:
    messages = [utter(name, "where is the log file?", 0), utter("ann", "the boot menu is broken", 30)]
    messages += [utter("bob", f"{name} have to press escape for the boot menu", 40)]
    messages = [
        utter("cat", f"that is {name} for {name} and me", second) for second in range(-60, -50)
    ] + messages
    assert link_all(messages)[-1] != "10"


def test_a_mistyped_name_is_understood() -> None:
    messages = [
        utter("cooldduuudde", "right click on the desktop", 0),
        utter("rww", "install build-essential", 30),
        utter("sdf2", "cooldduudde: it is normal", 60),
    ]
    assert link_all(messages)[-1] == "0"


def test_system_lines_are_neither_answers_nor_answered() -> None:
    linker = Linker()
    linker.link("0", utter("ann", "hello?", 0))
    joined = Utterance(None, "ann: bob has joined", NOON, system=True)
    assert linker.link("1", joined) is None
    assert linker.thread_of("1") == "1"
    assert linker.link("2", utter("bob", "ann: hello", 5)) == "0"


def test_the_same_message_again_keeps_its_link() -> None:
    linker = Linker()
    linker.link("a", utter("ann", "how do I mount a disk?", 0))
    first = linker.link("b", utter("bob", "ann: with mount", 5))
    assert first == linker.link("b", utter("bob", "something else", 900)) == "a"
    assert linker.link("a", utter("ann", "how do I mount a disk?", 0)) is None


def test_a_message_that_is_known_to_begin_a_conversation_answers_itself() -> None:
    linker = Linker()
    linker.link("a", utter("ann", "how do I mount a disk?", 0))
    assert linker.link("b", utter("bob", "ann: with mount", 5), answers="b") is None
    assert linker.thread_of("b") == "b"


def test_replies_to_one_forgotten_message_are_one_conversation() -> None:
    linker = Linker(memory=2)
    for key in ("a", "b"):
        linker.link(key, utter("ann", "yes", 0), answers="gone")
    assert linker.thread_of("a") == linker.thread_of("b") == "gone"
    assert linker.thread_of("gone") == "gone"


def test_a_clock_of_twelve_hours_may_wrap() -> None:
    def wrapped_messages(wrapped: float) -> list[Utterance]:
        return [
            utter("ann", "how do I mount a disk?", 0),
            utter("bob", "with the command mount", 60 - wrapped),
            utter("ann", "which command?", 90 - wrapped),
            utter("cat", "does anybody know a good editor?", 7200 - wrapped),
        ]

    assert link_all(wrapped_messages(43_200)) == link_all(wrapped_messages(0))


def test_huge_and_hostile_texts_are_cut() -> None:
    for text in (
        "bob: " * 500_000,
        "a" * 3_000_000,
        "\u4e00" * 1_000_000,
        "@" * 1_000_000,
        " \n" * 1_000_000,
    ):
        messages = [utter("bob", text, 0), utter(text, "bob: " + text, 1), utter("bob", text, 2)]
        assert len(link_all(messages)) == 3


def test_memory_has_bounds() -> None:
    for memory in (0, -1, 10**9):
        with pytest.raises(InvalidInput):
            Linker(memory=memory)

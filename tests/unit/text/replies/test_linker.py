"""Links between messages: what must hold whatever is said, and what anybody would link."""

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


def said(author: str | None, text: str, second: float | None = None) -> Utterance:
    return Utterance(author, text, None if second is None else NOON + timedelta(seconds=second))


def links(utterances: Sequence[Utterance], linker: Linker | None = None) -> list[str | None]:
    linker = linker or Linker()
    return [linker.link(str(place), each) for place, each in enumerate(utterances)]


@given(st.lists(UTTERANCES, max_size=25), st.integers(1, 8))
def test_whatever_is_said_only_remembered_messages_are_answered(
    utterances: list[Utterance], memory: int
) -> None:
    linker = Linker(memory=memory)
    roots: dict[str, str] = {}
    for place, each in enumerate(utterances):
        key = str(place)
        answers = linker.link(key, each)
        assert answers is None or (answers in list(roots)[-memory:] and not each.system)
        assert linker.thread_of(key) == (key if answers is None else roots[answers])
        if not each.system:
            roots[key] = linker.thread_of(key)


@given(st.lists(UTTERANCES, min_size=1, max_size=15), st.data())
def test_what_comes_later_changes_nothing(utterances: list[Utterance], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(utterances)))
    assert links(utterances)[:cut] == links(utterances[:cut])


@given(st.lists(UTTERANCES, min_size=2, max_size=12), st.data())
def test_what_is_known_is_kept(utterances: list[Utterance], data: st.DataObject) -> None:
    linker = Linker()
    for place, each in enumerate(utterances):
        known = data.draw(st.none() | st.integers(0, place).map(str) | st.just("elsewhere"))
        answers = linker.link(str(place), each, answers=known)
        if known is not None and known != str(place):
            assert answers == known
            if not each.system:
                assert linker.thread_of(str(place)) == linker.thread_of(known)


def test_a_name_at_the_beginning_tells_whom_it_answers() -> None:
    talk = [
        said("ann", "how do I mount a disk?", 0),
        said("bob", "does anybody know a good editor?", 20),
        said("cat", "ann: with the command mount", 60),
        said("dan", "@bob: try vim", 70),
        said("Mary Ann", "bob, emacs", 80),
        said("bob", "Mary Ann: is that free?", 95),
        said("ann", "cat: thanks, that works", 100),
    ]
    assert links(talk) == [None, None, "0", "1", "1", "4", "2"]


def test_two_exchanges_at_once_stay_apart() -> None:
    talk = [said("bob", "the new disks are here", -172_800), said("dan", "the backup is done", -86_400)]
    for turn in range(6):
        talk += [
            said("ann", f"bob: my printer prints page {turn}", 40 * turn),
            said("cat", f"dan: the router drops packet {turn}", 40 * turn + 10),
            said("bob", f"ann: which printer driver {turn}?", 40 * turn + 20),
            said("dan", f"cat: which router firmware {turn}?", 40 * turn + 30),
        ]
    linker = Linker()
    links(talk, linker)
    threads = [linker.thread_of(str(place)) for place in range(2, len(talk))]
    first, second = set(threads[0::4] + threads[2::4]), set(threads[1::4] + threads[3::4])
    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.parametrize("name", ["you", "usual", "no", "it"])
def test_a_name_that_is_a_word_does_not_draw_every_message(name: str) -> None:
    talk = [said(name, "where is the log file?", 0), said("ann", "the boot menu is broken", 30)]
    talk += [said("bob", f"{name} have to press escape for the boot menu", 40)]
    talk = [said("cat", f"that is {name} for {name} and me", second) for second in range(-60, -50)] + talk
    assert links(talk)[-1] != "10"


def test_a_mistyped_name_is_understood() -> None:
    talk = [
        said("cooldduuudde", "right click on the desktop", 0),
        said("rww", "install build-essential", 30),
        said("sdf2", "cooldduudde: it is normal", 60),
    ]
    assert links(talk)[-1] == "0"


def test_system_lines_are_neither_answers_nor_answered() -> None:
    linker = Linker()
    linker.link("0", said("ann", "hello?", 0))
    joined = Utterance(None, "ann: bob has joined", NOON, system=True)
    assert linker.link("1", joined) is None
    assert linker.thread_of("1") == "1"
    assert linker.link("2", said("bob", "ann: hello", 5)) == "0"


def test_the_same_message_again_keeps_its_link() -> None:
    linker = Linker()
    linker.link("a", said("ann", "how do I mount a disk?", 0))
    first = linker.link("b", said("bob", "ann: with mount", 5))
    assert first == linker.link("b", said("bob", "something else", 900)) == "a"
    assert linker.link("a", said("ann", "how do I mount a disk?", 0)) is None


def test_a_message_that_is_known_to_begin_a_conversation_answers_itself() -> None:
    linker = Linker()
    linker.link("a", said("ann", "how do I mount a disk?", 0))
    assert linker.link("b", said("bob", "ann: with mount", 5), answers="b") is None
    assert linker.thread_of("b") == "b"


def test_replies_to_one_forgotten_message_are_one_conversation() -> None:
    linker = Linker(memory=2)
    for key in ("a", "b"):
        linker.link(key, said("ann", "yes", 0), answers="gone")
    assert linker.thread_of("a") == linker.thread_of("b") == "gone"
    assert linker.thread_of("gone") == "gone"


def test_a_clock_of_twelve_hours_may_wrap() -> None:
    def talk(wrapped: float) -> list[Utterance]:
        return [
            said("ann", "how do I mount a disk?", 0),
            said("bob", "with the command mount", 60 - wrapped),
            said("ann", "which command?", 90 - wrapped),
            said("cat", "does anybody know a good editor?", 7200 - wrapped),
        ]

    assert links(talk(43_200)) == links(talk(0))


def test_huge_and_hostile_texts_are_cut() -> None:
    for text in (
        "bob: " * 500_000,
        "a" * 3_000_000,
        "\u4e00" * 1_000_000,
        "@" * 1_000_000,
        " \n" * 1_000_000,
    ):
        talk = [said("bob", text, 0), said(text, "bob: " + text, 1), said("bob", text, 2)]
        assert len(links(talk)) == 3


def test_memory_has_bounds() -> None:
    for memory in (0, -1, 10**9):
        with pytest.raises(InvalidInput):
            Linker(memory=memory)

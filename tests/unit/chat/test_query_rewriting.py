"""What is searched for when a message leans on what was said before."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.chat.query_rewriting import MAX_LENGTH, standalone
from conspectus.model.results import Message

TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(["it", "And", "Berlin", "what", "the", "cost", '"a b"', "日本", "?"])).map(
        " ".join
    ),
)
TALK = st.lists(st.builds(Message, st.sampled_from(["user", "assistant", "system"]), TEXTS), max_size=8)


def build_talk(*contents: str) -> list[Message]:
    roles = ("user", "assistant")
    return [Message(roles[number % 2], content) for number, content in enumerate(contents)]


CARNEGIE = build_talk("Who was Andrew Carnegie?", "A steel magnate who gave away his fortune.")
GALAXY = build_talk("What is the warranty of the Galaxy S24?", "It is two years.")


@pytest.mark.parametrize(
    ("message", "history", "added"),
    [
        ("How old was he when he died?", CARNEGIE, ["Andrew", "Carnegie"]),
        ("Where is it made?", GALAXY, ["Galaxy", "S24", "warranty"]),
        (
            "And in Berlin?",
            build_talk("What does a day ticket cost in Hamburg?", "7.80 euros."),
            ["ticket", "cost"],
        ),
        (
            "what about children?",
            build_talk("What does a day ticket cost?", "7.80 euros."),
            ["ticket", "cost"],
        ),
        (
            "Does this apply to contractors?",
            build_talk("How many vacation days are there?", "30."),
            ["vacation"],
        ),
        (
            "Is there another one?",
            build_talk("Which printers are on the second floor?", "P2."),
            ["printers", "floor"],
        ),
        ("Why?", build_talk("Is the VPN required for Jira?", "Yes."), ["VPN", "Jira"]),
        (
            "Major characters",
            build_talk("Who are the Saviors in the series?", "Villains."),
            ["Saviors", "series"],
        ),
        (
            "Which one is cheaper?",
            build_talk("Compare Postgres with MySQL", "Both are free."),
            ["Postgres", "MySQL"],
        ),
        (
            "What is its limit?",
            build_talk('What does "flush timeout" do?', "It waits."),
            ["flush", "timeout"],
        ),
        (
            "How old was she?",
            build_talk("Who won the prize in 1903?", "Marie Curie did."),
            ["Marie", "Curie", "1903"],
        ),
        (
            "Und in Berlin?",
            build_talk("Was kostet ein Tagesticket in Hamburg?", "7,80."),
            ["Tagesticket", "Hamburg"],
        ),
        (
            "Und für Väter?",
            build_talk("Wie beantrage ich Elternzeit?", "Schriftlich."),
            ["Elternzeit", "beantrage"],
        ),
        ("那柏林呢", build_talk("汉堡的日票多少钱", "7.80"), ["汉堡的日票多少钱"]),
    ],
)
def test_what_a_message_leaves_open_is_filled_in(
    message: str, history: list[Message], added: list[str]
) -> None:
    query = standalone(message, history)
    assert query.startswith(message)
    assert set(added) <= set(query.removeprefix(message).split())


@pytest.mark.parametrize(
    "message",
    [
        "How do I reset the password of my Jira account?",
        "Are Christopher Nolan and Sathish Kalathil both film directors?",
        "Is it possible to install the printer driver without admin rights?",
        "Homer's Odyssey is an episode. What recurring character makes his first appearance?",
        "What do those who work abroad have to declare on their tax return?",
        "Who wrote Pride and Prejudice?",
        "Which groups of people is it especially important to vaccinate against flu?",
        "Was kostet ein Tagesticket für den Nahverkehr in Hamburg?",
        "¿Cómo puedo renovar mi pasaporte en la oficina?",
        "请问在柏林申请护照需要准备哪些材料",
        "Traceback (most recent call last): KeyError in orders.py line 12, how do I fix it?",
    ],
)
def test_a_message_that_says_all_itself_stays_as_it_is(message: str) -> None:
    assert standalone(message, CARNEGIE) == message


def test_the_first_message_stays_as_it_is() -> None:
    assert standalone(" Why is it so? ", []) == " Why is it so? "
    assert standalone("Why?", [Message("assistant", "How can I help?")]) == "Why?"


def test_a_chain_of_leaning_questions_leads_back_to_what_it_is_about() -> None:
    history = [
        *CARNEGIE,
        *build_talk("How much did he donate?", "350 million."),
        *build_talk("To whom?", "Libraries."),
    ]
    assert "Carnegie" in standalone("And when did he do that?", history)


def test_a_new_topic_ends_the_old_one() -> None:
    history = [*CARNEGIE, *build_talk("What is the warranty of the Galaxy S24?", "Two years.")]
    query = standalone("Where is it made?", history)
    assert "Galaxy" in query and "Carnegie" not in query


def test_a_short_message_without_names_gets_a_few_words_only() -> None:
    history = build_talk(
        "How do I file a travel expense report in Concur after a conference abroad?", "Open Concur."
    )
    message = "Which receipts are required for the hotel?"
    query = standalone(message, history)
    assert 1 <= len(query.removeprefix(message).split()) <= 3


def test_no_word_comes_twice_and_talk_does_not_come() -> None:
    history = build_talk("Hello, can you please tell me about the PRINTER printer Printer?", "Sure!")
    assert standalone("Is it a good printer?", history) == "Is it a good printer?"


@pytest.mark.parametrize("long", ["word " * 2_000, "A" * 10_000, "日" * 10_000, '"' * 10_000, "A-" * 5_000])
def test_what_is_long_stays_whole_and_is_not_made_longer(long: str) -> None:
    assert standalone(long, build_talk(long, long)) in {long, long.strip()}
    query = standalone("Why is it so?", build_talk(long, long))
    assert query.startswith("Why is it so?") and len(query) <= MAX_LENGTH


class WatchedHistory(Sequence[Message]):
    """A history that remembers which of its turns were looked at."""

    def __init__(self, turns: list[Message]) -> None:
        self.turns = turns
        self.seen: set[int] = set()

    def __len__(self) -> int:
        return len(self.turns)

    def __getitem__(self, index):
        positions = range(len(self.turns))[index]
        self.seen.update([positions] if isinstance(positions, int) else positions)
        return self.turns[index]


def test_of_long_histories_only_the_end_is_looked_at() -> None:
    history = WatchedHistory(build_talk(*("Why is it so with Turing? " * 345 for _ in range(200))))
    assert standalone("Why is it so?", history) != "Why is it so?"
    assert min(history.seen) >= 194


@given(TEXTS, TALK)
def test_a_message_is_never_lost(message: str, history: list[Message]) -> None:
    query = standalone(message, history)
    assert query == message or query.startswith(message.strip())
    assert len(query) <= max(MAX_LENGTH, len(message))
    assert query == standalone(message, list(history))
    if query != message:
        conversation = " ".join(turn.content for turn in history)
        assert all(word in conversation for word in query.removeprefix(message.strip()).split())

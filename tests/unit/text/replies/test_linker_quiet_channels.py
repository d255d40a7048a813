"""Links in channels with a few messages a day."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from conspectus.text.replies import Linker, Utterance

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = 86_400
Talk = Sequence[tuple[str, str, int]]

TOKEN: Talk = [
    ("ann", "How do I reset my token?", 0),
    ("bo", "Go to settings, then tokens", 5),
    ("ann", "thanks bo, that worked", 9),
]
API_KEY: Talk = [
    ("ann", "How do I set up my API key?", 0),
    ("bo", "Go to settings", 60),
    ("ann", "I don't see it in settings", 100),
    ("bo", "It's under Developer Settings > API Keys", 160),
]
NOT_FOUND: Talk = [
    ("ann", "I'm getting a 404 error", 0),
    ("bo", "Which endpoint?", 30),
    ("ann", "The /users/profile", 60),
    ("bo", "Check your authentication token", 100),
    ("ann", "Thanks, that fixed it!", 200),
]
CRASH: Talk = [
    ("ann", "The app crashes when I open a report", 0),
    ("bo", "On which phone?", 45),
    ("ann", "An old Pixel", 70),
    ("bo", "Try the new build", 150),
    ("ann", "Works now", 400),
]
DOOR: Talk = [
    ("Maria Lopez", "Does the door code still work?", 0),
    ("Jun", "it was changed on Monday", 40),
    ("Maria Lopez", "what is it now?", 55),
    ("Jun", "I will send it to you", 90),
]
GERMAN: Talk = [
    ("ann", "Wie bekomme ich einen neuen Schlüssel?", 0),
    ("bo", "In den Einstellungen unter Schlüssel", 30),
    ("ann", "danke, hat geklappt", 80),
]
SPANISH: Talk = [
    ("ann", "¿Dónde está el informe de marzo?", 0),
    ("bo", "En la carpeta de finanzas", 50),
    ("ann", "gracias, ya lo veo", 90),
]
JAPANESE: Talk = [
    ("健", "ログインできません", 0),
    ("優子", "どの画面ですか", 40),
    ("健", "はい、でも同じです", 90),
]
EXCHANGES = {
    "token": TOKEN,
    "api key": API_KEY,
    "404": NOT_FOUND,
    "crash": CRASH,
    "door": DOOR,
    "german": GERMAN,
    "spanish": SPANISH,
    "japanese": JAPANESE,
}


def conversation_starts(talk: Talk, precision: int | None = 1) -> list[int]:
    """Where each message's conversation begins; times are rounded down to `precision` seconds."""
    linker = Linker()
    for position, (author, text, second) in enumerate(talk):
        at = None if precision is None else NOON + timedelta(seconds=second // precision * precision)
        linker.link(str(position), Utterance(author, text, at))
    return [int(linker.thread_of(str(position))) for position in range(len(talk))]


@pytest.mark.parametrize("precision", [1, 60, None])
@pytest.mark.parametrize("name", EXCHANGES)
def test_one_exchange_is_one_conversation(name: str, precision: int | None) -> None:
    talk = EXCHANGES[name]
    assert conversation_starts(talk, precision) == [0] * len(talk)


@pytest.mark.parametrize("precision", [1, 60, None])
@pytest.mark.parametrize("aside", ["anyone for lunch?", "Anybody up for coffee?"])
def test_somebody_who_asks_everyone_begins_another(aside: str, precision: int | None) -> None:
    talk = [*NOT_FOUND[:3], ("cy", aside, 90), *NOT_FOUND[3:]]
    assert conversation_starts(talk, precision) == [0, 0, 0, 3, 0, 0]


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize(
    ("author", "text"),
    [("cy", "new printer arrived"), ("ann", "the deploy failed again"), ("bo", "I am on holiday next week")],
)
def test_something_else_a_day_later_begins_another(name: str, author: str, text: str) -> None:
    talk = [*EXCHANGES[name], (author, text, DAY)]
    assert conversation_starts(talk)[-1] == len(talk) - 1


def test_every_day_has_its_own_conversation() -> None:
    exchanges = [exchange for name, exchange in EXCHANGES.items() if name != "japanese"]
    talk = [
        (author, text, second + day * DAY)
        for day, exchange in enumerate(exchanges)
        for author, text, second in exchange
    ]
    starts = [position for position, (_, _, second) in enumerate(talk) if second % DAY == 0]
    assert sorted(set(conversation_starts(talk))) == starts


def test_an_answer_comes_hours_later_when_nothing_else_was_said() -> None:
    talk = [("ann", "can somebody review my change?", 0), ("bo", "done, looks good", 3 * 3600)]
    assert conversation_starts(talk) == [0, 0]

"""Rewrite a message as a standalone query with keywords of earlier turns."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

import regex

from conspectus.chat.content_words import content_words, inner_names, is_english, names, size, words
from conspectus.model.results import Message
from conspectus.text.late_patterns import regex_pattern

Leaning: TypeAlias = Literal["alone", "partly", "wholly"]
"""How much a message depends on earlier turns. `wholly` means that it has little content of its own."""
MAX_LENGTH: Final = 1_000
"""Maximum characters of a message after terms are added."""
MAX_WORDS: Final = {"partly": 3, "wholly": 12}
TURNS: Final = 3
"""Maximum number of earlier user turns that are read while they depend on earlier turns themselves."""
SHORT: Final = 2
BRIEF: Final = 3
"""Most content words of a message with hardly any content, and of one with little content."""
RESOLVED: Final = 3
"""Content words before a pronoun from which it refers to the message itself. A name counts as enough."""
COMPARED: Final = 6
"""Most content words of a message in which a comparing word refers to earlier turns."""
MAX_ANSWER_LENGTH: Final = 300
"""Characters of the last answer that are searched for its subject."""
_PRONOUNS = """
it its itself they them their theirs themselves he him his himself she her hers herself this these those
"""
PRONOUNS: Final = frozenset(_PRONOUNS.split())
RELATIVE: Final = frozenset({"who", "that", "of", "which", "persons", "people"})
_COMPARING = "same other others another else instead either neither one ones such also too both again"
COMPARING: Final = frozenset(_COMPARING.split())
_AND = "and or but und oder aber et ou mais y o pero e ma en maar och men og"
_AND_IN_RUSSIAN = r"\u0438|\u0430|\u0438\u043b\u0438|\u043d\u043e"
GOING_ON: Final = regex_pattern(
    rf"\W*(?:{'|'.join(_AND.split())}|{_AND_IN_RUSSIAN}|(?:what|how) about)\b", regex.IGNORECASE
)
GOING_ON_IN: Final = 4
"""The start of a follow-up question, and its maximum number of words in any language."""
WHICH_OF_THEM: Final = regex_pattern(r"\bwhich ones?\b", regex.IGNORECASE)
NOT_COMPARING: Final = regex_pattern(
    r"\btoo \w+|\bsuch as\b|\bone (?:of|month|day|year|week)\b", regex.IGNORECASE
)
EMPTY_IT: Final = regex_pattern(
    r"\b(?:is|was|be|would|will) it (?:not )?(?:\w+ ){1,2}(?:to|that|for|if)\b"
    r"|\bdoes it (?:take|mean)\b|\bit (?:takes|means)\b|\bit (?:is|was) (?:\w+ ){1,2}(?:to|that)\b",
    regex.IGNORECASE,
)
"""Expletive `it`, which refers to nothing."""


def standalone(message: str, history: Sequence[Message]) -> str:
    """Return the search query for a message, with terms of earlier turns added if it needs them.

    A complete message is returned unchanged. If a message depends on earlier turns, by a pronoun or because
    it has hardly any content, the terms of the last turns are added. If it has more content, or is short and
    has no name, a few terms are added. The message itself is kept, and terms are added only up to 1,000
    characters.
    """
    earlier_messages = [turn.content for turn in history[-2 * TURNS :] if turn.role == "user"]
    if not earlier_messages:
        return message
    english = is_english([message, *earlier_messages])
    leaning = _measure_leaning(message, english=english)
    if leaning == "alone":
        return message
    result = message
    topic = _topic(history, english=english, answers=leaning == "wholly")
    for term in islice(_new_words(message, topic), MAX_WORDS[leaning]):
        longer = f"{result.strip()} {term}".strip()
        if len(longer) > MAX_LENGTH:
            break
        result = longer
    return result


def _measure_leaning(text: str, *, english: bool) -> Leaning:
    """Return how much a text depends on earlier turns. Other languages than English use its length."""
    content = size(content_words(text))
    if GOING_ON.match(text) and (content <= SHORT or size(words(text)) <= GOING_ON_IN):
        return "wholly"
    if not english:
        return "alone" if size(words(text)) > SHORT or inner_names(text) else "wholly"
    if WHICH_OF_THEM.search(text) or _points_back(text):
        return "wholly" if content <= BRIEF else "partly"
    if inner_names(text):
        return "alone"
    compares = not COMPARING.isdisjoint(words(text.lower())) and not NOT_COMPARING.search(text)
    if content <= SHORT or (content <= COMPARED and compares):
        return "wholly"
    return "partly" if content <= BRIEF else "alone"


def _points_back(text: str) -> bool:
    """Return whether a pronoun comes before anything in the message that it may refer to."""
    message_words = words(text)
    empty_it = EMPTY_IT.search(text) is not None
    name_words = {word for name in inner_names(text) for word in name.split()}
    content_before = 0
    for position, word in enumerate(message_words):
        plain, following = word.lower(), "".join(message_words[position + 1 : position + 2]).lower()
        passing = (empty_it and plain == "it") or (plain == "those" and following in RELATIVE)
        if plain in PRONOUNS and not passing:
            return content_before < RESOLVED
        content_before += RESOLVED if position and word in name_words else bool(content_words(word))
    return False


def _topic(history: Sequence[Message], *, english: bool, answers: bool) -> Iterator[str]:
    """Return the terms of the last turns, newest first, up to a turn with enough content of its own."""
    seen = 0
    for turn in reversed(history):
        if turn.role != "user":
            if answers and not seen:
                yield from names(turn.content[:MAX_ANSWER_LENGTH])[:1]
            continue
        seen += 1
        yield from names(turn.content)
        yield from content_words(turn.content)
        if seen == TURNS or _measure_leaning(turn.content, english=english) != "wholly":
            return


def _new_words(message: str, terms: Iterator[str]) -> Iterator[str]:
    """Return the distinct words of the terms that the message does not contain."""
    seen_words = {word.lower() for word in words(message)}
    for term in terms:
        for word in term.split():
            if word.lower() not in seen_words:
                seen_words.add(word.lower())
                yield word

"""Rewrite a message as a standalone query with keywords of earlier turns."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

import regex

from conspectus.model.results import Message
from conspectus.text.analyzer import STOP_WORDS
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
    asked = [turn.content for turn in history[-2 * TURNS :] if turn.role == "user"]
    if not asked:
        return message
    english = is_english([message, *asked])
    leaning = _leaning(message, english=english)
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


def _leaning(text: str, *, english: bool) -> Leaning:
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
    found = words(text)
    empty_it = EMPTY_IT.search(text) is not None
    known = {word for name in inner_names(text) for word in name.split()}
    said = 0
    for place, word in enumerate(found):
        plain, following = word.lower(), "".join(found[place + 1 : place + 2]).lower()
        passing = (empty_it and plain == "it") or (plain == "those" and following in RELATIVE)
        if plain in PRONOUNS and not passing:
            return said < RESOLVED
        said += RESOLVED if place and word in known else bool(content_words(word))
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
        if seen == TURNS or _leaning(turn.content, english=english) != "wholly":
            return


def _new_words(message: str, terms: Iterator[str]) -> Iterator[str]:
    """Return the distinct words of the terms that the message does not contain."""
    known = {word.lower() for word in words(message)}
    for term in terms:
        for word in term.split():
            if word.lower() not in known:
                known.add(word.lower())
                yield word


READ: Final = 2_000
"""Maximum characters of a message that are read."""

_SHORTENED = "im ive id ill hes shes theyre youre thats whats"
FUNCTION_WORDS: Final = STOP_WORDS["english"] | frozenset(_SHORTENED.split())
_TALK = """
know tell please want need like think say said mean give get got go going make made let see look help ask
question answer info information detail details more most much many lot thing things something anything
kind kinds type types sort way ways example examples really just only even still yet okay ok yes thanks
thank hi hello hey wow well sure sorry oops good great nice interested interesting wonder wondering
understand explain describe clarify list mention provide available specific regarding one ones another
other others same both each every all else stuff us
"""
TALK: Final = frozenset(_TALK.split())
"""Conversational words without a subject."""

_DENSE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD: Final = regex_pattern(r"[\p{L}\p{M}\p{N}]++(?:[.'\u2019@_:/+-][\p{L}\p{M}\p{N}]++)*+[+#]*+")
_IN_NAME = r"[\p{L}\p{M}\p{N}.'\u2019&-]*+"
_BETWEEN = r"[ \t]++(?:(?:of|the|de|von|van|and|for|in)[ \t]++)?+"
_NAME: Final = regex_pattern(rf"\p{{Lu}}{_IN_NAME}(?:{_BETWEEN}[\p{{Lu}}\p{{N}}]{_IN_NAME})*+")
_OPENING, _CLOSING = r"\u201c\u201e\u00ab", r"\u201d\u00bb"
_QUOTED: Final = regex_pattern(rf'["{_OPENING}]([^"{_OPENING}{_CLOSING}\n]{{2,60}})["{_CLOSING}\u201c]')
_DENSE_WORD: Final = regex_pattern(_DENSE)
_ENGLISH_SHARE = 0.2


def words(text: str) -> list[str]:
    """Return the words at the start of a text, in order."""
    return _WORD.findall(text[:READ])


def content_words(text: str) -> list[str]:
    """Return the content words of a text."""
    return [word for word in words(text) if _has_content(word)]


def names(text: str) -> list[str]:
    """Return quoted terms and capitalized phrases, without function words at their ends."""
    text = text[:READ]
    found = (_bare(run.rstrip(".").split()) for run in _NAME.findall(text))
    return [*_QUOTED.findall(text), *(" ".join(run) for run in found if run)]


def inner_names(text: str) -> list[str]:
    """Return the names after the first word, which is always capitalized."""
    text = text.strip()
    first = _WORD.search(text[:READ])
    return names(text[first.end() :]) if first else []


def size(found: Sequence[str]) -> int:
    """Count words. In scripts without spaces, two characters count as one word."""
    return sum(-(-len(word) // 2) if _DENSE_WORD.search(word) else 1 for word in found)


def is_english(texts: Sequence[str]) -> bool:
    """Return whether enough of the words are English function words."""
    found = [_plain(word) for text in texts for word in words(text)]
    known = sum(word in FUNCTION_WORDS for word in found)
    return known >= _ENGLISH_SHARE * len(found)


def _has_content(word: str) -> bool:
    plain = _plain(word)
    return (
        plain not in FUNCTION_WORDS
        and plain not in TALK
        and (len(word) > 1 or not word.isascii() or word.isdigit())
    )


def _plain(word: str) -> str:
    return word.lower().replace("'", "").replace("\u2019", "")


def _bare(run: list[str]) -> list[str]:
    while run and not _has_content(run[0]):
        run = run[1:]
    while run and not _has_content(run[-1]):
        run = run[:-1]
    return run

"""What in a prompt could be more than text, found without the code that is to prevent it.

Only what a citation is, is asked of the reader of answers, because it decides that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from types import MappingProxyType
from xml.etree import ElementTree

import regex

from conspectus.model.results import Message
from conspectus.text.citation_marks import marks
from conspectus.text.prompt_escaping import PASSAGE, RETRIEVED, USER_MESSAGE

_TEMPLATE_TOKEN = regex.compile(
    r"<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|<<\s?/?SYS\s?>>|</?s>|<(?:start|end)_of_turn>|\[system\]\("
    r"|\[\s?/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\s?\]"
)
_ROLE_LINE = regex.compile(
    r"^[\s>*_#`|(\[{\p{Cf}-]*(?:(?i:system|assistant|human|developer)|User|USER|AI)"
    r"(?i:\s(?:message|prompt))?[*_`\])}]*\s?[:\uff1a](?!:)",
    regex.MULTILINE,
)
_UNSEEN = regex.compile(r"[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069]|[\u200b-\u200f\u2060\ufeff]{2}")
_CARRIER = regex.compile(
    r"(?<![\\!])\[[^\]\n]*(?<!\\)\]\((?:javascript:|data:|[^)\s]*\{)|!\[[^\]\n]*(?<!\\)\]\([^)\s]*(?:[?&]|data:)"
)
_NOT_COMPARED = regex.compile(r"[\\\s\p{Cf}\p{Cc}\p{Mn}\p{Cs}\ufffd-\uffff]|\[\u2026\]")

PATTERNS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "a token of a chat template is intact": _TEMPLATE_TOKEN.search,
        "a line speaks for somebody": _ROLE_LINE.search,
        "a character is not to be seen": _UNSEEN.search,
        "an image or a link carries data": _CARRIER.search,
        "repeating the text would cite something": lambda context: any(marks(unescape(context))),
    }
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a prompt should hold: our system message, the user's words, and the texts that were retrieved.

    `tasks` says that they stand in one list, a line each, and not in passages.
    """

    system: str
    question: str
    texts: Sequence[str]
    tasks: bool = False


def faults_of(messages: Sequence[Message], expected: Expected) -> tuple[str, ...]:
    """The names of all that is wrong; nothing for a prompt in which retrieved text is only text."""
    if [message.role for message in messages] != ["system", "user"]:
        return ("there are other messages than ours and the user's",)
    context, marked, question = messages[1].content.rpartition(f"\n\n{USER_MESSAGE}\n")
    faults = [name for name, found in PATTERNS.items() if found(context)]
    if messages[0].content != expected.system:
        faults.append("the system message is not ours")
    if not marked or question != expected.question or not _parses_back(context, expected):
        faults.append("a delimiter is broken")
    return tuple(faults)


def _parses_back(context: str, expected: Expected) -> bool:
    """Whether the context holds exactly the texts that were retrieved, each in its place."""
    try:
        root = ElementTree.fromstring(context)
    except ElementTree.ParseError:
        return False
    if root.tag != RETRIEVED or USER_MESSAGE in context:
        return False
    if expected.tasks:
        return not len(root) and len((root.text or "").strip().splitlines()) == 1 + len(expected.texts)
    plain = all(passage.tag == PASSAGE and not len(passage) for passage in root)
    numbers = [passage.get("number") for passage in root]
    texts = [_compared(passage.text or "") for passage in root]
    numbered = numbers == [str(number) for number in range(1, len(root) + 1)]
    return plain and numbered and texts == [_compared(text) for text in expected.texts]


def _compared(text: str) -> str:
    """A text without what is added to it or taken from it on purpose."""
    return _NOT_COMPARED.sub("", text)

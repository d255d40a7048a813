"""Questions for a first mention or an introduction, by language. A further language is a further entry."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from conspectus.deferred import dataclass

SUBJECT: Final = "SUBJECT"
"""Stands for the subject in an expression."""


@dataclass(frozen=True, slots=True)
class FirstMentionWords:
    """Regular expressions for whole questions: for the first `mentions` of a subject, and `introductions`.

    In the past, only verbs of speaking count: `When did Apple introduce the iPod?` asks for a date.
    """

    mentions: tuple[str, ...]
    introductions: tuple[str, ...]


_ASK: Final = (
    r"(?:when|where|at (?:what|which) (?:point|time|moment|minute)|in (?:what|which) (?:\w+ )?(?:part|section"
    r"|chapter|paragraph|video|lesson|message|scene))(?: exactly)?"
)
_SAY: Final = (
    r"(?:mention|say|name|explain|discuss|talk about|speak (?:of|about)|bring up|refer to|touch on|ask about)"
)
_SAID: Final = (
    r"(?:mentioned|said|named|explained|discussed|talked about|spoken (?:of|about)|brought up|referred to"
    r"|come up|appear|occur)"
)
_BE_OR_DO: Final = r"(?:is|are|was|were|has|have|do|does|did)"
_SPEAKER: Final = r"(?:[\w'-]+ ){1,4}?"
_ENGLISH: Final = FirstMentionWords(
    mentions=(
        rf"{_ASK} (?:do|does|did|has|have|had) {_SPEAKER}first {_SAY} SUBJECT",
        rf"{_ASK} (?:do|does|did|has|have|had) {_SPEAKER}{_SAY} SUBJECT for the first time",
        rf"{_ASK} (?:do|does) {_SPEAKER}first (?:introduce|define) SUBJECT",
        rf"{_ASK} {_BE_OR_DO} SUBJECT (?:been )?first {_SAID}",
        rf"{_ASK} {_BE_OR_DO} SUBJECT (?:been )?{_SAID} for the first time",
        rf"{_ASK} (?:is|are) SUBJECT first introduced",
        r"(?:(?:when|where|what) (?:is|was) |find |show me )?(?:the )?first (?:mention|occurrence|appearance)"
        r" of SUBJECT",
    ),
    introductions=(
        rf"{_ASK} (?:do|does) {_SPEAKER}(?:introduce|explain|define) SUBJECT",
        rf"{_ASK} (?:is|are) SUBJECT (?:introduced|explained)",
    ),
)
_WO: Final = r"(?:wann|wo|an welcher stelle)"
_ER: Final = r"(?:er|sie|man|wir|ich|d\w\w \w+|\w+)"
_ERSTMALS: Final = r"(?:zum ersten mal|erstmals|zuerst)"
_GERMAN: Final = FirstMentionWords(
    mentions=(
        rf"{_WO} (?:erwähnt|nennt|erklärt|bespricht)e?n? {_ER} {_ERSTMALS} SUBJECT",
        rf"{_WO} (?:erwähnt|nennt|erklärt|bespricht)e?n? {_ER} SUBJECT {_ERSTMALS}",
        rf"{_WO} (?:wird|werden|wurden?) SUBJECT {_ERSTMALS} (?:erwähnt|genannt|erklärt|besprochen"
        r"|eingeführt)",
    ),
    introductions=(
        rf"{_WO} (?:erklärt|erklären|erläutert|erläutern) {_ER} SUBJECT",
        rf"{_WO} (?:führt|führen) {_ER} SUBJECT ein",
        rf"{_WO} (?:wird|werden) SUBJECT (?:eingeführt|erklärt|erläutert)",
    ),
)
_QUAND: Final = r"(?:quand|où|à quel moment)"
_PARLE: Final = (
    r"(?:est-ce qu(?:e |')(?:[\w'-]+ ){1,3}?)?(?:mentionne|explique|introduit|présente|parle)(?:nt)?"
    r"(?:-t)?(?:-(?:il|elle|on|ils|elles))?"
)
_FRENCH: Final = FirstMentionWords(
    mentions=(
        rf"{_QUAND} {_PARLE} pour la première fois (?:de |du |des |d')?SUBJECT",
        rf"{_QUAND} {_PARLE} (?:de |du |des |d')?SUBJECT pour la première fois",
        rf"{_QUAND} SUBJECT (?:est|sont)(?:-(?:il|elle|ils|elles))?"
        r" (?:mentionné|expliqué|introduit|présenté)e?s? pour la première fois",
    ),
    introductions=(rf"{_QUAND} (?:explique|introduit)(?:nt)?(?:-t)?-(?:il|elle|on|ils|elles) SUBJECT",),
)
_CUANDO: Final = r"(?:cuándo|dónde|en qué momento)"
_HABLA: Final = r"(?:se )?(?:menciona|explica|introduce|presenta|habla)n?(?: de)?"
_SPANISH: Final = FirstMentionWords(
    mentions=(
        rf"{_CUANDO} {_HABLA} por primera vez (?:de )?SUBJECT",
        rf"{_CUANDO} {_HABLA} SUBJECT por primera vez",
    ),
    introductions=(rf"{_CUANDO} (?:se )?(?:explica|introduce)n? SUBJECT",),
)
FIRST_MENTION_WORDS: Final[Mapping[str, FirstMentionWords]] = MappingProxyType(
    {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH, "es": _SPANISH}
)

"""Attack patterns: texts that speak to a language model instead of to a reader.

Each pattern has anchors, of which a text must hold one before its expression is tried, and expressions
without nested repetition. The list is short on purpose: a pattern that ordinary text matches does harm.
"""

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex

_UNSEEN = regex.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_SPACES = regex.compile(r"\s+")


class _Pattern(NamedTuple):
    name: str
    anchors: tuple[str, ...]
    expression: regex.Pattern[str]


def _pattern(name: str, anchors: str, *expressions: str) -> _Pattern:
    return _Pattern(name, tuple(anchors.split("|")), regex.compile("|".join(expressions)))


def _words(most: int) -> str:
    return rf"(?:[^\s.!?]+ ){{0,{most}}}?"


_RULES = r"(?:instructions?|prompts?|rules|guidelines|directions|directives|commands|programming|training)\b"
_EARLIER = r"(?:previous|prior|above|earlier|preceding|initial|original|existing|foregoing|system|your|all)"
_SECRET = (
    r"(?:passwords?|api keys?|credentials|secrets?|access tokens?|private keys?|chat history|conversation|"
    r"system prompt|memories)\b"
)
_MODEL = r"(?:ai|llm|assistant|language model|chatbot|gpt|chatgpt|claude|gemini|copilot)s?\b"

_PATTERNS = (
    _pattern(
        "override",
        "ignore|disregard|forget|override|bypass|your new|your real|your actual|your true",
        rf"\b(?:ignore|disregard|forget|override|bypass) {_words(3)}{_EARLIER} {_words(3)}{_RULES}",
        r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what) (?:\w+ ){0,3}"
        r"(?:above|before this|told|instructed|said before)\b",
        r"\byour (?:new|real|actual|true) (?:instructions|task|objective|goal) (?:are|is|:)",
    ),
    _pattern(
        "role_marker",
        "<|im_|<|start_header|<|system|<|user|<|assistant|<|eot_id|[/inst]|<<sys>>|<start_of_turn>|[system]|"
        "system prompt|system message|system_prompt|# system|# instruction",
        r"<\|(?:im_start|im_end|start_header_id|eot_id|system|user|assistant)\|>|\[/inst\]|<</?sys>>",
        r"<start_of_turn>|\[system\]\(|\[/?system_prompt\]|#{2,3} ?(?:system|instruction) ?:",
        r"(?:begin|new|updated) system (?:prompt|message) ?[:\]]",
    ),
    _pattern(
        "persona",
        "you are now|do anything now|developer mode|jailbr|pretend|act as|you will be|you're going to|"
        "unrestricted|uncensored|unfiltered|stay in character|amoral|from now on",
        r"\bdo anything now\b|\bdeveloper mode (?:output|enabled|response)",
        r"\bjailbreak(?:ed)? (?:mode|prompt)",
        r"\byou are now (?:\w+ ){0,3}(?:dan|unrestricted|unfiltered|uncensored|jailbroken|free from)\b",
        r"\b(?:amoral|unrestricted|uncensored|unfiltered) (?:\w+ ){0,2}(?:ai|chatbot|assistant|model|gpt)\b",
        r"\bfrom now on,? you (?:\w+ ){0,2}(?:act|respond|answer|reply|obey|ignore|pretend|behave|speak)\b",
        r"\bpretend (?:that )?(?:you|to) (?:\w+ ){0,5}no (?:rules|restrictions|limits|filters)\b",
        r"\bstay in character\b",
    ),
    _pattern(
        "reveal_prompt",
        "system prompt|instructions|initial prompt|hidden prompt|above",
        rf"\b(?:reveal|print|show|repeat|output|display|leak|disclose|tell) {_words(4)}"
        r"(?:system|initial|hidden) (?:prompt|instructions|message)\b",
        r"\b(?:repeat|print|output) (?:\w+ ){0,4}(?:words|text|everything|instructions) above\b",
    ),
    _pattern(
        "exfiltrate",
        "password|api key|credential|secret|token|private key|chat history|conversation|system prompt|"
        "memories|](",
        rf"\b(?:send|post|forward|e-?mail|upload|exfiltrate|transmit|leak) {_words(6)}{_SECRET} "
        rf"{_words(6)}(?:to|at) (?:https?://|\S{{1,100}}@|\S{{1,100}}\.(?:com|net|org|io)\b)",
        r"!\[[^\]]{0,200}\]\(https?://[^)\s]{1,300}[?&=][^)\s]{0,300}[{<\[]",
    ),
    _pattern(
        "hide_from_user",
        "the user",
        r"\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|"
        r"mention(?:ing)?(?: \w+){0,3} to) the user\b",
    ),
    _pattern(
        "address_model",
        "if you are|attention|important|note |message |instruction|directive",
        r"\b(?:attention|important|note|message|instructions?|directive) (?:to|for|:) ?"
        rf"(?:all |the |any |an )?{_MODEL}",
        rf"\bif you are (?:an? |the )?(?:\w+ ){{0,2}}{_MODEL}",
    ),
    _pattern("hidden_text", "\U000e0020|\U000e0061|\U000e0065|\U000e006f", "[\U000e0020-\U000e007e]{8}"),
)

NAMES: tuple[str, ...] = tuple(each.name for each in _PATTERNS)


def attack_pattern(*texts: str) -> str | None:
    """Return the name of the first pattern that one of the texts matches."""
    return next((name for text in texts for name in _matching(text)), None)


def _matching(text: str) -> Iterator[str]:
    plain = text if text.isascii() else unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    low = plain.casefold()
    tried = [each for each in _PATTERNS if any(anchor in low for anchor in each.anchors)]
    if tried:
        low = _SPACES.sub(" ", low)
        yield from (each.name for each in tried if each.expression.search(low))

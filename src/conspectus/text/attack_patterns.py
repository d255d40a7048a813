"""Attack patterns: texts that speak to a language model instead of to a reader.

Each pattern has expressions for the readings of a text, without nested repetition. Before them one prefilter
looks at the letters of the text alone, whatever stands between them. The list is short on purpose: a pattern
that ordinary text matches does harm.
"""

from collections.abc import Iterator
from typing import Final

from conspectus.text.attack_expressions import attack_expression, match_words
from conspectus.text.late_patterns import re2_pattern, regex_pattern
from conspectus.text.plain_words import letters, readings, simplify

_RULES = r"(?:instructions?|prompts?|rules|guidelines|directions|directives|commands|programming|training)\b"
_EARLIER = r"(?:previous|prior|above|earlier|preceding|initial|original|existing|foregoing|system|your|all)"
_SECRET = (
    r"(?:passwords?|api keys?|credentials|secrets?|access tokens?|private keys?|chat history|conversation|"
    r"system prompt|memories)\b"
)
_MODEL = r"(?:ai|llm|assistant|language model|chatbot|gpt|chatgpt|claude|gemini|copilot)s?\b"
_PATTERNS = (
    attack_expression(
        "override",
        "(?:ignore|disregard|forget|override|bypass)[a-z]*?(?:instruction|prompt|rule|guideline|direct|command"
        "|programming|training|above|beforethis|told|saidbefore)"
        "|your(?:new|real|actual|true)(?:instruction|task|objective|goal)",
        rf"\b(?:ignore|disregard|forget|override|bypass) {match_words(3)}{_EARLIER} {match_words(3)}{_RULES}",
        r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what) (?:\w+ ){0,3}"
        r"(?:above|before this|told|instructed|said before)\b",
        r"\byour (?:new|real|actual|true) (?:instructions|task|objective|goal) (?:are|is|:)",
    ),
    attack_expression(
        "role_marker",
        "(?:begin|new|updated)system(?:prompt|message)",
        r"<\|(?:im_start|im_end|start_header_id|eot_id|system|user|assistant)\|>|\[/inst\]|<</?sys>>",
        r"<start_of_turn>|\[system\]\(|\[/?system_prompt\]|#{2,3} ?(?:system|instruction) ?:",
        r"(?:begin|new|updated) system (?:prompt|message) ?[:\]]",
        symbols="<|;[/inst;<<sys;<</sys;<start_of_turn>;[system;[/system;"
        "##system;## system;##instruction;## instruction",
    ),
    attack_expression(
        "persona",
        "doanythingnow|developermode|jailbreak|youarenow|(?:amoral|unrestricted|uncensored|unfiltered)[a-z]*?"
        "(?:ai|chatbot|assistant|model|gpt)|fromnowonyou|pretend[a-z]*?no(?:rules|restrict|limits|filters)"
        "|stayincharacter",
        r"\bdo anything now\b|\bdeveloper mode (?:output|enabled|response)",
        r"\bjailbreak(?:ed)? (?:mode|prompt)",
        r"\byou are now (?:\w+ ){0,3}(?:dan|unrestricted|unfiltered|uncensored|jailbroken|free from)\b",
        r"\b(?:amoral|unrestricted|uncensored|unfiltered) (?:\w+ ){0,2}(?:ai|chatbot|assistant|model|gpt)\b",
        r"\bfrom now on,? you (?:\w+ ){0,2}(?:act|respond|answer|reply|obey|ignore|pretend|behave|speak)\b",
        r"\bpretend (?:that )?(?:you|to) (?:\w+ ){0,5}no (?:rules|restrictions|limits|filters)\b",
        r"\bstay in character\b",
    ),
    attack_expression(
        "reveal_prompt",
        "(?:reveal|print|show|repeat|output|display|leak|disclose|tell)[a-z]*?(?:system|initial|hidden)"
        "(?:prompt|instructions|message)|(?:repeat|print|output)[a-z]*?above",
        rf"\b(?:reveal|print|show|repeat|output|display|leak|disclose|tell) {match_words(4)}"
        r"(?:system|initial|hidden) (?:prompt|instructions|message)\b",
        r"\b(?:repeat|print|output) (?:\w+ ){0,4}(?:words|text|everything|instructions) above\b",
    ),
    attack_expression(
        "exfiltrate",
        "(?:send|post|forward|email|upload|exfiltrate|transmit|leak)[a-z]*?(?:password|apikey|credential|secret"
        "|accesstoken|privatekey|chathistory|conversation|systemprompt|memories)",
        rf"\b(?:send|post|forward|e-?mail|upload|exfiltrate|transmit|leak) {match_words(6)}{_SECRET} "
        rf"{match_words(6)}(?:to|at) (?:https?://|\S{{1,100}}@|\S{{1,100}}\.(?:com|net|org|io)\b)",
        r"!\[[^\]]{0,200}\]\(https?://[^)\s]{1,300}[?&=][^)\s]{0,300}[{<\[]",
        symbols="](http",
    ),
    attack_expression(
        "hide_from_user",
        "(?:donot|dont|never|without)(?:tell|inform|notify|alert|mention)[a-z]*?theuser",
        r"\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|"
        r"mention(?:ing)?(?: \w+){0,3} to) the user\b",
    ),
    attack_expression(
        "address_model",
        "(?:attention|important|note|message|instructions?|directive)(?:to|for)?(?:all|the|any|an)?"
        "(?:ai|llm|assistant|languagemodel|chatbot|gpt|chatgpt|claude|gemini|copilot)"
        "|ifyouare[a-z]*?(?:ai|llm|assistant|languagemodel|chatbot|gpt|claude|gemini|copilot)",
        r"\b(?:attention|important|note|message|instructions?|directive) (?:to|for|:) ?"
        rf"(?:all |the |any |an )?{_MODEL}",
        rf"\bif you are (?:an? |the )?(?:\w+ ){{0,2}}{_MODEL}",
    ),
)
HIDDEN = "hidden_text"
NAMES: tuple[str, ...] = (*(pattern.name for pattern in _PATTERNS), HIDDEN)
_HIDDEN = regex_pattern("[\U000e0020-\U000e007e]{8}")
_BY_LETTERS: Final = re2_pattern("|".join(pattern.letters for pattern in _PATTERNS))
_SYMBOLS = tuple(symbol for pattern in _PATTERNS for symbol in pattern.symbols)
PIECE = 4_000
OVERLAP = 1_000
"""Characters of a text that are looked at together, and of which the next part begins with the last ones."""


def attack_pattern(*texts: str) -> str | None:
    """Return the name of the first pattern that one of the texts matches."""
    return next((name for text in texts for piece in _pieces(text) for name in _find_patterns(piece)), None)


def _pieces(text: str) -> Iterator[str]:
    if len(text) <= PIECE:
        yield text
        return
    for start in range(0, len(text) - OVERLAP, PIECE - OVERLAP):
        yield text[start : start + PIECE]


def _find_patterns(text: str) -> Iterator[str]:
    if not text.isascii() and _HIDDEN.search(text):
        yield HIDDEN
    low = simplify(text)
    only_letters = letters(low)
    has_symbols = any(symbol in low for symbol in _SYMBOLS)
    if has_symbols or _BY_LETTERS.search(only_letters) is not None:
        tried = [pattern for pattern in _PATTERNS if pattern.is_possible(low, only_letters)]
        for reading in readings(low) if tried else ():
            yield from (pattern.name for pattern in tried if pattern.expression.search(reading))

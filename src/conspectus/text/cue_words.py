"""Words by which a question asks for the past, in several languages. A language is a line of a table."""

from typing import Final

from conspectus.text.late_patterns import regex_pattern

_FORMERLY: Final = {
    "ar": "سابقا|قبل ذلك|من قبل|كنت",
    "de": "früher|vorher|zuvor|davor|ehemals|ursprünglich",
    "en": "before|previous|previously|formerly|former|earlier|used to|originally|at first|initially",
    "es": "antes|anteriormente|anterior|originalmente|solía",
    "fr": "avant|auparavant|précédent|précédente|autrefois|initialement",
    "it": "prima|precedente|precedentemente|originariamente",
    "ja": "以前|前は|かつて|昔",
    "pt": "antes|anterior|anteriormente|originalmente",
    "ru": "раньше|прежде|до этого|прежний|прежняя|изначально",
    "zh": "以前|之前|从前|原来|曾经",
}
"""Words and phrases by language, for which an earlier statement is as good as a later one."""


def _any_of(phrases: dict[str, str]) -> str:
    """Return an expression for all phrases, as whole words in languages with spaces."""
    dense = "|".join(phrases[language] for language in ("ja", "zh"))
    spaced = "|".join(words for language, words in phrases.items() if language not in ("ja", "zh"))
    return rf"\b(?:{spaced})\b|{dense}"


_FORMERLY_PATTERN: Final = regex_pattern(_any_of(_FORMERLY))


def asks_for_the_past(query: str) -> bool:
    """Return whether a question asks what was so before."""
    return _FORMERLY_PATTERN.search(query.casefold()) is not None

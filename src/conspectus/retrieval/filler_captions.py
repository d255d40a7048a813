"""Captions of one filler word, such as `Okay.`, which say nothing alone."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FILLER_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": (
            "ah aha alright and but hey hm hmm huh mhm mm no now oh ok okay right so uh uhm um"
            " well yeah yep yes"
        ),
        "de": "ach äh ähm aha also gut hm ja na naja nein nun oder oh okay so tja",
        "fr": "ah alors ben bien bon donc eh euh hein hmm non oh ok oui voilà",
        "es": "ah ajá bien bueno eh entonces este no oh ok pues sí vale ya",
    }
)
"""Words that are a caption where somebody hesitates or agrees, by language."""
_FILLERS: Final = frozenset(word for words in FILLER_WORDS.values() for word in words.split())
_WORD: Final = re.compile(r"\w+")
_MAX_FILLER_CHARACTERS: Final = 24


def is_filler_caption(text: str) -> bool:
    """Return whether a caption has no word, or only one that is a filler."""
    if len(text) > _MAX_FILLER_CHARACTERS:
        return False
    words = _WORD.findall(text.casefold())
    return len(words) < 2 and _FILLERS.issuperset(words)

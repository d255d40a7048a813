"""Vague prompts: questions that name nothing, such as "Did that work?"."""

from typing import Final

from conspectus.chat.content_words import content_words, inner_names, words
from conspectus.chat.query_rewriting import GOING_ON, PRONOUNS
from conspectus.text.analyzer import STOP_WORDS

_VAGUE = """
mean means meant work works worked working fix fixes fixed fixing solve solved happen happens happened
happening do does did done doing try tried change changed changes problem problems issue issues cause caused
reason fail fails failed failing break breaks broke broken finish finished ready correct right wrong true
false possible next now today again update updates status result results idea ideas news agree agreed decide
decided talk talked talking discuss discussed discussion conversation thread message messages reply replied
write wrote written summary summarize summarise topic point recap continue
"""
VAGUE: Final = frozenset(_VAGUE.split())
"""Content words that a conversation must fill with a subject."""
POINTING: Final = PRONOUNS | {"that", "there", "so"}
_FUNCTION_WORDS: Final = frozenset().union(*STOP_WORDS.values())


def names_nothing(prompt: str) -> bool:
    """Return whether a prompt has no subject of its own: what it is about must stand in the conversation.

    It has at most one content word if a pronoun refers back, else none. "status" and "fix" are no subjects.
    """
    if not prompt.strip() or inner_names(prompt):
        return False
    subjects = [word for word in content_words(prompt) if word.lower() not in VAGUE | _FUNCTION_WORDS]
    refers_back = not POINTING.isdisjoint(words(prompt.lower())) and not GOING_ON.match(prompt)
    return len(subjects) <= int(refers_back)

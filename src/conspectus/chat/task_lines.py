"""Tasks as lines of a prompt: one line a task whatever its text says, within a number of tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from conspectus.ports import CountTokens
from conspectus.text.clean import graphemes_prefix
from conspectus.text.late_patterns import re_pattern, regex_pattern

HEADER = "Relevant tasks:"
NO_TASKS = "No relevant tasks found."
SNIPPET = 100
CUT = "..."

_BREAKING = regex_pattern(r"[\s\p{Zl}\p{Zp}\p{Cc}]+")
# What a person cannot see must not speak to a model. Joiners are parts of letters and emoji.
_INVISIBLE = regex_pattern(r"[[\p{Cf}\p{Cs}]--[\u200c\u200d\p{GCB=Prepend}]]", regex.VERSION1)
_IMITATION = regex_pattern(
    r"(?<=\p{Nd}\s*[.):\uFF0E]\s*)[\[\uFF3B]|[(\uFF08](?=\s*similarity\s*[:\uFF1A])", regex.IGNORECASE
)
_IN_BRACKETS = re_pattern(r"[\\\[\]]")
_IN_PARENTHESES = re_pattern(r"[\\(),]")


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task found, as a prompt shows it; `attachment` is the one of its attachments that was found.

    `document` is the id of what was found, for citations; `priority` and `similarity` may not be known.
    """

    number: int
    task: str
    status: str
    priority: str | None
    snippet: str
    similarity: float | None
    document: str
    attachment: str | None = None


def render_tasks(
    lines: Sequence[TaskLine], count: CountTokens, most: int | None, *, metadata: bool = True
) -> tuple[str, tuple[TaskLine, ...]]:
    """The text, never more than `most` tokens (None: no limit), and the lines that are in it.

    A line is in it whole or not at all; one that does not fit is passed over for those after it, and a
    last line says how many are left out. Where not even that fits, or there is no line, it is empty.
    """
    shown = [_line(each, metadata=metadata) for each in lines]
    whole = _text(shown, left_out=0)
    if not lines or most is None or count(whole) <= most:
        return whole, tuple(lines)
    kept: list[int] = []
    text = ""
    for place in range(-1, len(shown)):
        tried = [*kept, place] if place >= 0 else []
        candidate = _text([shown[each] for each in tried], left_out=len(shown) - len(tried))
        if len(tried) < len(shown) and count(candidate) <= most:
            kept, text = tried, candidate
    return text, tuple(lines[each] for each in kept)


def snippet(text: str, characters: int = SNIPPET) -> str:
    """The beginning of a text, of so many characters at most, with `...` behind it where it was cut.

    No grapheme is cut in two.
    """
    return text if len(text) <= characters else graphemes_prefix(text, characters) + CUT


def _text(shown: Sequence[str], *, left_out: int) -> str:
    if not shown and not left_out:
        return ""
    more = [f"... [{left_out} more {'task' if left_out == 1 else 'tasks'}]"] if left_out else []
    return "\n".join([HEADER, *shown, *more])


def _line(line: TaskLine, *, metadata: bool) -> str:
    """`1. [id] (status: …, priority: …) - snippet (similarity: 95.00%)`.

    The first bracket without a backslash begins the id and the next one ends it; what is in parentheses
    after it, and at the very end, is ours.
    """
    told = [f"{line.number}. [{_IN_BRACKETS.sub(_escaped, _on_one_line(line.task))}]"]
    if metadata:
        told.append(f"({', '.join(_facts(line))})")
    told.append(f"- {_IMITATION.sub(_escaped, _on_one_line(line.snippet))}")
    if metadata and line.similarity is not None:
        told.append(f"(similarity: {line.similarity:.2%})")
    return " ".join(told)


def _facts(line: TaskLine) -> list[str]:
    facts = {"status": line.status, "priority": line.priority or "none", "attachment": line.attachment}
    return [
        f"{name}: {_IN_PARENTHESES.sub(_escaped, _on_one_line(value))}"
        for name, value in facts.items()
        if value is not None
    ]


def _on_one_line(text: str) -> str:
    return _BREAKING.sub(" ", _INVISIBLE.sub("", text)).strip()


def _escaped(found: "re.Match[str] | regex.Match[str]") -> str:
    return f"\\{found[0]}"

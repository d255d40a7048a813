"""Tasks as lines of a prompt: one line per task, within a token limit."""

import re
from collections.abc import Sequence

import regex

from conspectus.deferred import dataclass
from conspectus.model.trust import Trust, level_mark
from conspectus.ports import CountTokens
from conspectus.text.counts import format_count
from conspectus.text.graphemes import graphemes_prefix
from conspectus.text.late_patterns import re_pattern, regex_pattern

HEADER = "Relevant tasks:"
NO_TASKS = "No relevant tasks found."
SNIPPET = 100
CUT = "..."

_BREAKING = regex_pattern(r"[\s\p{Zl}\p{Zp}\p{Cc}]+")
# Characters that people cannot see must not reach a model. Joiners are parts of letters and emoji.
_INVISIBLE = regex_pattern(r"[[\p{Cf}\p{Cs}]--[\u200c\u200d\p{GCB=Prepend}]]", regex.VERSION1)
_IMITATION = regex_pattern(
    r"(?<=\p{Nd}\s*[.):\uFF0E]\s*)[\[\uFF3B]|[(\uFF08](?=\s*similarity\s*[:\uFF1A])", regex.IGNORECASE
)
_IN_BRACKETS = re_pattern(r"[\\\[\]]")
_IN_PARENTHESES = re_pattern(r"[\\(),]")


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task as a prompt shows it. `attachment` is the attachment that was found, if any.

    `document` is the id of the found document for citations. `priority` and `similarity` may be unknown.
    """

    number: int
    task: str
    status: str
    priority: str | None
    snippet: str
    similarity: float | None
    document: str
    attachment: str | None = None
    trust: Trust = "trusted"


def render_tasks(
    lines: Sequence[TaskLine], count: CountTokens, maximum: int | None, *, metadata: bool = True
) -> tuple[str, tuple[TaskLine, ...]]:
    """Return a text of at most `most` tokens (None: no limit), and the lines in it.

    A line is included as a whole or skipped; shorter lines after it may still fit. A final line says how many
    are left out. The text is empty if not even that line fits, or if there are no lines.
    """
    texts = [_line(line, metadata=metadata) for line in lines]
    complete = _text(texts, left_out=0)
    if not lines or maximum is None or count(complete) <= maximum:
        return complete, tuple(lines)
    included: list[int] = []
    text = ""
    for position in range(-1, len(texts)):
        tried = [*included, position] if position >= 0 else []
        candidate = _text([texts[line_number] for line_number in tried], left_out=len(texts) - len(tried))
        if len(tried) < len(texts) and count(candidate) <= maximum:
            included, text = tried, candidate
    return text, tuple(lines[line_number] for line_number in included)


def snippet(text: str, characters: int = SNIPPET) -> str:
    """Truncate a text to a number of characters, followed by `...`. Graphemes are not split."""
    if len(text) <= characters:
        return text
    return graphemes_prefix(text, characters) + CUT


def _text(lines: Sequence[str], *, left_out: int) -> str:
    if not lines and not left_out:
        return ""
    more = [f"... [{format_count(left_out, 'more task')}]"] if left_out else []
    return "\n".join([HEADER, *lines, *more])


def _line(line: TaskLine, *, metadata: bool) -> str:
    """`1. [id] (untrusted) (status: …, priority: …) - snippet (similarity: 95.00%)`.

    Only an untrusted task has the mark. The id is between the first unescaped bracket and the next closing
    bracket. Only the parentheses after it and those at the end are generated; all else is text of the task.
    """
    name = _IN_BRACKETS.sub(_escape, _on_one_line(line.task))
    parts = [f"{line.number}. [{name}]{level_mark(line.trust)}"]
    if metadata:
        parts.append(f"({', '.join(_describe_line(line))})")
    parts.append(f"- {_IMITATION.sub(_escape, _on_one_line(line.snippet))}")
    if metadata and line.similarity is not None:
        parts.append(f"(similarity: {line.similarity:.2%})")
    return " ".join(parts)


def _describe_line(line: TaskLine) -> list[str]:
    facts = {"status": line.status, "priority": line.priority or "none", "attachment": line.attachment}
    return [
        f"{name}: {_IN_PARENTHESES.sub(_escape, _on_one_line(value))}"
        for name, value in facts.items()
        if value is not None
    ]


def _on_one_line(text: str) -> str:
    return _BREAKING.sub(" ", _INVISIBLE.sub("", text)).strip()


def _escape(match: "re.Match[str] | regex.Match[str]") -> str:
    return f"\\{match[0]}"

"""Passages as elements of a prompt, and the frame around them."""

from collections.abc import Iterable, Iterator, Mapping

import regex

from conspectus.text.late_patterns import regex_pattern
from conspectus.text.prompt_escaping import FRAME, PASSAGE, disarm

_GIVEN = regex_pattern(
    rf'^<{PASSAGE} number="(\d+)"[^>]*>\n(.*?)\n</{PASSAGE}>$', regex.DOTALL | regex.MULTILINE
)


def escape(text: str) -> str:
    """Escape a text for XML. The module of the standard library for this loads an HTTP client."""
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")


def quoteattr(text: str) -> str:
    """Escape and quote a value of an XML attribute."""
    value = escape(text).replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")
    if '"' in value and "'" not in value:
        return f"'{value}'"
    quoted = value.replace('"', "&quot;")
    return f'"{quoted}"'


def escape_text(text: str) -> str:
    """Disarm and escape a text: it can neither close nor open a tag, nor imitate a role."""
    return escape(disarm(text))


def element(fields: Mapping[str, str | int], content: str) -> str:
    """Return one passage element; `content` is escaped already, the fields are escaped here."""
    attributes = "".join(f" {name}={quoteattr(disarm(str(value)))}" for name, value in fields.items())
    return f"<{PASSAGE}{attributes}>\n{content}\n</{PASSAGE}>"


def frame_passages(elements: Iterable[str]) -> str:
    """Join passages and enclose them in the delimiters; empty without passages."""
    text = "\n".join(elements)
    return text.join(FRAME) if text else ""


def passages(rendered: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the disarmed text of each passage of a rendering, in order."""
    for match in _GIVEN.finditer(rendered):
        yield int(match[1]), match[2].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

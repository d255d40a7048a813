"""The form of a chat's prompt: passages as data, with nothing in them that could pass for more."""

from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr, unescape

import regex

from conspectus.text.prompt_escaping import PASSAGE, RETRIEVED, disarm

_GIVEN = regex.compile(
    rf'^<{PASSAGE} number="(\d+)"[^>]*>\n(.*?)\n</{PASSAGE}>$', regex.DOTALL | regex.MULTILINE
)


def shown(text: str) -> str:
    """Disarmed and escaped: no content can close a tag, open one, or speak for somebody."""
    return escape(disarm(text))


def element(fields: Mapping[str, str | int], content: str) -> str:
    """One passage around content that is `shown` already; the fields are disarmed and escaped here."""
    attributes = "".join(f" {name}={quoteattr(disarm(str(value)))}" for name, value in fields.items())
    return f"<{PASSAGE}{attributes}>\n{content}\n</{PASSAGE}>"


def framed(elements: Iterable[str]) -> str:
    """All passages between the delimiters; nothing for none."""
    whole = "\n".join(elements)
    return f"<{RETRIEVED}>\n{whole}\n</{RETRIEVED}>" if whole else ""


def passages(rendered: str) -> Iterator[tuple[int, str]]:
    """The number and the disarmed text of each passage of a rendering, in its order."""
    for found in _GIVEN.finditer(rendered):
        yield int(found[1]), unescape(found[2])

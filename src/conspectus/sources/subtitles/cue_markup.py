"""Text out of markup: tags, inner times, entities and voices of SubRip and WebVTT, and comments of others."""

import html
import re
from collections.abc import Iterator

_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]++([^<>]+)>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")


def spoken(raw: str) -> Iterator[tuple[str | None, str]]:
    """What each voice says, with its name; one part without a name where there is no voice."""
    first, *rest = _VOICE.split(raw)
    speaker: str | None = None
    text = first
    for name, words in zip(rest[::2], rest[1::2], strict=True):
        named = html.unescape(name).strip() or None
        if speaker is not None and named != speaker and plain(text):
            yield speaker, plain(text)
            text = ""
        speaker, text = named or speaker, text + words
    yield speaker, plain(text)


def plain(raw: str) -> str:
    """The text without its markup."""
    return html.unescape(_TAG.sub("", raw)).strip()


def without_comments(text: str) -> str:
    """A text of SGML or XML without its comments; one that is not closed goes to the end."""
    first, *rest = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in rest)

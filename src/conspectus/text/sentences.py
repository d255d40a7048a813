"""Sentences of a text: where each begins and ends, with hard-wrapped lines of a paragraph joined."""

from collections.abc import Iterator

import regex

Span = tuple[int, int]

SENTENCE_END = regex.compile(
    r"""(?<!(?:\n|\A)[ \t]{0,8}\d{1,3})[.!?\u2026]['"\u2019\u201D)\]]*(?=\s)"""
    r"""|[\u3002\uFF01\uFF1F][\u300D\u300F\uFF09]*"""
    r"""|(?<=\S)(?=\n)(?!(?<=[^\n]{40})\n[ \t]*+(?:[\p{L}("'\[`]|[*_]++\p{L}|\p{N}++(?![.)])))"""
)
"""A full stop, or the end of a line; but a long line that the next one continues is not the end."""


def sentences(text: str) -> Iterator[Span]:
    """The half-open spans of the sentences, without the white space between them."""
    start = 0
    for end in (*(found.end() for found in SENTENCE_END.finditer(text)), len(text)):
        lead = len(text[start:end]) - len(text[start:end].lstrip())
        if start + lead < end:
            yield start + lead, start + len(text[start:end].rstrip())
        start = end

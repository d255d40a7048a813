"""The part of a text that matches a query, for a line in a list."""

from conspectus.text.sentences import sentences
from conspectus.text.words import analyzer_for

BEFORE = "… "


def excerpt(text: str, query: str, *, characters: int, language: str | None = "english") -> str:
    """The text from the sentence with most terms of the query on, or all of it if that is near the start."""
    analyzer = analyzer_for(language)
    wanted = set(analyzer.terms(query))
    best, start = 0, 0
    for begin, end in sentences(text):
        found = len(wanted.intersection(analyzer.terms(text[begin:end])))
        if found > best:
            best, start = found, begin if end > characters else 0
    return f"{BEFORE}{text[start:]}" if start else text

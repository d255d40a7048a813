"""Headers and footers of pages, which are read once, and not at all if they only number the pages."""

import re

_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_DIGIT = re.compile(r"\d")
MIN_LONG_WORDS = 2


def margin_block(margin: str, text: str) -> str:
    """Return a `Header` or `Footer` with its text; empty if it has no words but the page number."""
    is_page_number = bool(_DIGIT.search(text)) and len(_LONG_WORD.findall(text)) < MIN_LONG_WORDS
    return f"{margin}: {text}" if any(map(str.isalnum, text)) and not is_page_number else ""

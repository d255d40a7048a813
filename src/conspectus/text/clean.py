"""Text cleaning: what every database can store, and UTF-8 can encode."""

import regex

from conspectus.text.late_patterns import regex_pattern

PAIR = regex_pattern(r"[\ud800-\udbff][\udc00-\udfff]")
_UNSTORABLE = regex_pattern(r"([\ud800-\udbff][\udc00-\udfff])|[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Replace NUL characters and lone surrogates by U+FFFD.

    A surrogate pair becomes its character. Every database can store the result, and it can be encoded in
    UTF-8.
    """
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return _UNSTORABLE.sub(_replace_unstorable, text)


def _replace_unstorable(match: regex.Match[str]) -> str:
    if match[1] is None:
        return "\ufffd"
    pair: str = match[1]
    return pair.encode("utf-16", "surrogatepass").decode("utf-16")

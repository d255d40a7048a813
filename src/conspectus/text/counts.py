"""Numbers with their nouns in sentences: `1 memory`, `2 memories`, `1,024 chunks`."""


def plural_of(noun: str) -> str:
    """Return the regular English plural of a noun."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun.endswith(("s", "x", "z", "ch", "sh", "to")):
        return f"{noun}es"
    return f"{noun}s"


def format_count(number: float, noun: str) -> str:
    """Return a number with its noun, which is in the plural unless the number is 1."""
    digits = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{digits} {noun if number == 1 else plural_of(noun)}"

"""The plural of English names of things."""


def singular_of(key: str) -> str | None:
    """What a key in the plural may be the plural of, in English; None where it is not in the plural."""
    if len(key) < 4 or not key.endswith("s") or key.endswith(("ss", "us", "is")):
        return None
    if key.endswith("ies"):
        return f"{key[:-3]}y"
    return key[:-2] if key.endswith(("ches", "shes", "xes", "sses", "zes", "oes")) else key[:-1]


def plural_of(key: str) -> str:
    """The regular plural of a key in English."""
    if key.endswith("y") and key[-2:-1] not in "aeiou":
        return f"{key[:-1]}ies"
    return f"{key}es" if key.endswith(("s", "x", "z", "ch", "sh", "to")) else f"{key}s"

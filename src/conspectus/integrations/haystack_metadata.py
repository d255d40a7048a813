"""What Haystack asks a document store about its metadata: fields, their types, values and ranges."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Metadata = Mapping[str, Any]


def describe_fields(documents: Iterable[Metadata]) -> dict[str, dict[str, str]]:
    """Return the type of each field: boolean, int, float or keyword."""
    types = {
        field: _type_of(value)
        for metadata in documents
        for field, value in metadata.items()
        if value is not None
    }
    return {field: {"type": type} for field, type in types.items()}


def find_range(documents: Iterable[Metadata], field: str) -> dict[str, Any]:
    """Return the least and greatest value of a field; None for values that cannot be compared."""
    values = [value for value in _values_of(documents, field) if isinstance(value, int | float | str)]
    try:
        return {"min": min(values, default=None), "max": max(values, default=None)}
    except TypeError:
        return {"min": None, "max": None}


def list_unique_values(documents: Iterable[Metadata], field: str, search_term: str | None) -> list[Any]:
    """Return the distinct values of a field that contain the term, by their text and type."""
    distinct = {
        (str(value), type(value).__name__, _key_of(value)): value for value in _values_of(documents, field)
    }
    term = (search_term or "").lower()
    return [distinct[key] for key in sorted(distinct) if term in key[0].lower()]


def count_unique_values(documents: Sequence[Metadata], fields: Iterable[str]) -> dict[str, int]:
    """Return the number of distinct values of each field."""
    names = [field.removeprefix("meta.") for field in fields]
    return {name: len({_key_of(value) for value in _values_of(documents, name)}) for name in names}


def _values_of(documents: Iterable[Metadata], field: str) -> list[Any]:
    name = field.removeprefix("meta.")
    return [metadata[name] for metadata in documents if metadata.get(name) is not None]


def _key_of(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "keyword"

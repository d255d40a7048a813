"""Author and language of a file, as its properties name them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from conspectus.model.records import Json
from conspectus.sources.files.extract import Extract, Refused
from conspectus.sources.files.zip_xml import Archive, find_related_part, local_name

MAX_AUTHOR_CHARACTERS = 300
_NO_PEOPLE = """
(anonymous) anonymous openpyxl python-docx python-pptx un-named unknown unspecified user xlsxwriter
"""
NO_PEOPLE = frozenset({*_NO_PEOPLE.split(), "microsoft office user", "windows user", "unknown author"})
"""What programs write where they know no author, in lower case."""
AUTHOR_FIELDS, LANGUAGE_FIELDS = ("author", "authors"), ("lang", "language")
"""Fields of front matter; those of authors are also in notebooks."""
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")


def join_authors(names: Iterable[str]) -> str | None:
    """Return the authors divided by commas; None if a file names no person.

    A name has a letter. It may hold several with semicolons between them, as Word writes them.
    """
    single_names = (
        _UNSEEN.sub("", " ".join(name.split())).strip() for joined in names for name in joined.split(";")
    )
    people = dict.fromkeys(
        name for name in single_names if name.lower() not in NO_PEOPLE and any(map(str.isalpha, name))
    )
    return ", ".join(people)[:MAX_AUTHOR_CHARACTERS] or None


def declared_authors(fields: Mapping[str, object]) -> str | None:
    """Return the authors in fields: texts, objects with a `name`, or lists of these; None without any."""
    values = [fields.get(field) for field in AUTHOR_FIELDS]
    authors = [author for value in values for author in (value if isinstance(value, list) else [value])]
    names = (author.get("name") if isinstance(author, Mapping) else author for author in authors)
    return join_authors(name for name in names if isinstance(name, str))


def language_metadata(tags: Iterable[str]) -> Mapping[str, Json]:
    """Return the first tag such as `en` or `de-AT` as metadata; none if no tag is valid."""
    valid_tags = (tag.strip() for tag in tags if _LANGUAGE.fullmatch(tag.strip()))
    return {"language": language} if (language := next(valid_tags, "")) else {}


def declared_language(fields: Mapping[str, object]) -> Mapping[str, Json]:
    """Return the language that fields name as metadata; none if no tag is valid."""
    tags = (fields.get(field) for field in LANGUAGE_FIELDS)
    return language_metadata(tag for tag in tags if isinstance(tag, str))


def texts_named(element: Any | None, name: str) -> list[str]:
    """Return the texts of the children of that name."""
    children = () if element is None else (child for child in element if local_name(child) == name)
    return list(filter(None, (" ".join((child.text or "").split()) for child in children)))


def with_core_properties(extract: Extract, archive: Archive) -> Extract:
    """Return what was read of an office document with the author and language of its core properties."""
    parts = archive.unread()
    try:
        properties = parts.xml(find_related_part(parts, "", "core-properties"))
    except Refused:
        # Damaged properties are no reason to refuse the text.
        return extract
    return replace(
        extract,
        author=join_authors(texts_named(properties, "creator")),
        metadata={**extract.metadata, **language_metadata(texts_named(properties, "language"))},
    )

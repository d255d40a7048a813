"""Relations read from made documents of other kinds than PEPs: python benchmarks/made_relations.py.

RFC headers, front matter, decision records, wiki, Markdown and Hugo notices, each with several targets,
beside texts that only speak of deprecation. No such set was at hand: these are made in the forms that such
documents have, by somebody who knew the rules.
"""

import json
from collections.abc import Iterator
from itertools import product
from typing import Final, NamedTuple

from conspectus.text.document_keys import document_key, path_key
from conspectus.text.relation_rules import statements_of


class Form(NamedTuple):
    """A text with `{0}` for the other document, whether that one is the newer, and whether it is a path."""

    text: str
    other_is_newer: bool
    is_path: bool = False


NUMBERED: Final = (
    Form(
        "Network Working Group                     R. Fielding\nRequest for Comments: 9999\nObsoletes: {0}"
        "                  Category: Standards Track\n\nA protocol for boats\n",
        other_is_newer=False,
    ),
    Form("RFC 9999\nObsoleted by: {0}\nCategory: Informational\n\nOld boats.\n", other_is_newer=True),
    Form(
        "# 7. Use boats\n\nDate: 2024-01-02\n\n## Status\n\nSuperseded by {0}\n\nText.", other_is_newer=True
    ),
    Form("# Use boats\n\n* Status: superseded by {0}\n* Date: 2024-01-02\n\nText.", other_is_newer=True),
    Form("Boats\n\nThis RFC has been superseded by {0}.\n\nText.", other_is_newer=True),
    Form("Boats\n\nThis standard replaces {0} and adds oars.\n\nText.", other_is_newer=False),
)
NAMED: Final = (
    Form('---\ntitle: Boats\nsuperseded_by: "{0}"\n---\n\nText.', other_is_newer=True),
    Form("---\ntitle: Boats\nreplaces:\n  - {0}\n---\n\nText.", other_is_newer=False),
    Form("Boats\n\nThis policy supersedes the {0}.\n\nText.", other_is_newer=False),
    Form('Boats\n\nThis document is obsolete and has been replaced by "{0}".\n\nText.', other_is_newer=True),
    Form("{{{{obsolete}}}}\n\nThis page is outdated, see [[{0}]].\n\nText.", other_is_newer=True),
)
PATHS: Final = (
    Form("> **Deprecated:** use [the new page]({0}) instead.\n\n# Boats\n\nText.", True, True),
    Form("# Boats\n\n!!! warning\n    This page is deprecated, see [boats]({0}).\n\nText.", True, True),
    Form(
        "# Boats\n\n**Note:** This guide is no longer maintained. See [the current guide]({0}).\n\nText.",
        True,
        True,
    ),
    Form("# Boats\n\nThis page has moved to [{0}]({0}).\n\nText.", True, True),
    Form(
        "Boats\n\n.. warning::\n\n   This document is deprecated in favor of :doc:`{0}`.\n\nText.",
        True,
        True,
    ),
    Form(
        "---\ntitle: Boats\n---\n\n{{{{< caution >}}}}\nThis document is out of date. Refer to [boats]({0})."
        "\n{{{{< /caution >}}}}\n\nText.",
        True,
        True,
    ),
)
TARGETS: Final = (
    (NUMBERED, ("RFC 2616", "RFC 7230", "ADR-0012")),
    (NAMED, ("Harbour Rules", "Travel policy 2024", "Guide to knots")),
    (PATHS, ("docs/new/boats.md", "../boats-v2.md", "handbook/boats.rst")),
)
UNRELATED: Final = (
    "# Changes\n\n* `open()` is deprecated, use `connect()` instead.\n* Replaced the old parser.",
    "# API\n\nThe field `name` is deprecated in favor of `title`.",
    "# Upgrading\n\nPods that use the old volume are replaced by new ones. See [volumes](volumes.md).",
    "Boats\n\nThis section replaces the placeholder text in your template.",
    "# Migration\n\nThe v1 endpoint was removed. It is replaced by v2.",
    "Package: boats\nReplaced version numbers are shown in grey.\n\nText.",
    "# FAQ\n\nIs this page deprecated? No, see [status](status.md).",
    "# Archive\n\nMessages are archived by the server after a year.",
    "# Style\n\nWords that are outdated, such as whilst, are replaced by others.",
    "# Updates\n\nThis guide updates you about boats every week.",
)
"""Texts that state nothing about another document."""

Pair = tuple[str, bool]


def read_pairs(text: str, key: str) -> set[Pair]:
    """Return the other documents that a text names as newer or older, with whether they are the newer."""
    statements = statements_of("", key, text, {})
    return {
        (stated.target, stated.is_inverse)
        for stated in statements
        if stated.kind == "supersedes" and stated.target
    }


def cases() -> Iterator[tuple[str, set[Pair]]]:
    """Yield the texts with the pairs that they state."""
    for forms, targets in TARGETS:
        for form, target in product(forms, targets):
            key = path_key(target) if form.is_path else document_key(target)
            yield form.text.format(target), {(key, form.other_is_newer)}
    for text in UNRELATED:
        yield text, set()


def score(key: str) -> str:
    """Return the counts for documents with a key, after each text that is read wrongly."""
    right = read = stated = 0
    for text, pairs in cases():
        read_from_text = read_pairs(text, key)
        right += len(read_from_text & pairs)
        read, stated = read + len(read_from_text), stated + len(pairs)
        if read_from_text != pairs:
            print(json.dumps([text, sorted(pairs), sorted(read_from_text)], ensure_ascii=False))
    precision, recall, f = right / max(read, 1), right / max(stated, 1), 2 * right / max(read + stated, 1)
    return f"stated {stated}, read {read}: precision {precision:.2f}, recall {recall:.2f}, F {f:.2f}"


def main() -> None:
    """Print both scores; a successor with the file name of the document itself is not told from it."""
    print("file name of its own:", score("old/oars.md"))
    print("file name of some successors:", score("old/boats.md"))


if __name__ == "__main__":
    main()

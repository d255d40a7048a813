"""Parsing: the share of the words of the expected Markdown that are in the text of files, by format."""

import argparse
import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypedDict

from conspectus import bootstrap
from conspectus.errors import ConspectusError, InvalidInput
from conspectus.evals.measures import percent
from conspectus.ports import FoundFile, Progress
from conspectus.settings import Settings

EXPECTED = ("{name}.md", "../groundtruth/{name}.md")
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ADDRESS = re.compile(r"\]\([^()\s]*\)")
_ESCAPE = re.compile(r"\\(?=[^\w\s]|_)")


class FormatReport(TypedDict):
    """The results for the files of one format, from 0 to 100; failures are by name."""

    files: int
    mean: float
    worst: float
    worst_file: str
    failures: dict[str, str]


def parsing(
    directory: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> dict[str, FormatReport]:
    """The share of the expected words found in the text of each file, by the end of the files' names.

    What a file `X` should become stands in `X.md` beside it, or in a folder `groundtruth` beside its own.
    A word counts as often as it is expected; a file that fails counts 0. Raises InvalidInput for a
    directory without such pairs.
    """
    files = bootstrap.local_files(settings or Settings.from_environment())
    pairs = list(_pairs(Path(directory)))
    if not pairs:
        raise InvalidInput("directory", f"{directory} has no file X with an X.md beside it")
    shares_by_kind: dict[str, dict[str, float]] = defaultdict(dict)
    failures: dict[str, dict[str, str]] = defaultdict(dict)
    for number, (path, expected) in enumerate(pairs):
        if progress is not None:
            progress("parsing", number, len(pairs))
        text, kind = "", path.suffix[1:].lower()
        try:
            parsed = files.parse(FoundFile(path, path.name, path.stat().st_size))
            text = "\n".join(document.text for document in parsed.documents)
        except ConspectusError as fault:
            failures[kind][path.name] = str(fault)
        shares_by_kind[kind][path.name] = share(expected.read_text(encoding="utf-8"), text)
    return {kind: _report(shares, failures[kind]) for kind, shares in sorted(shares_by_kind.items())}


def share(expected: str, text: str) -> float:
    """How many of the expected words are in the text, each as often as it is expected; 1 for no words.

    Comments, Markdown's escapes and the addresses of links are no words.
    """
    expected_words = _words(expected)
    return (expected_words & _words(text)).total() / expected_words.total() if expected_words else 1.0


def _words(text: str) -> Counter[str]:
    bare = _ADDRESS.sub("]", _COMMENT.sub("", html.unescape(text)))
    return Counter(_WORD.findall(_ESCAPE.sub("", bare).lower()))


def _pairs(directory: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted(directory.rglob("*")):
        expected = (path.parent / pattern.format(name=path.name) for pattern in EXPECTED)
        if path.is_file() and path.parent.name != "groundtruth":
            yield from ((path, candidate) for candidate in expected if candidate.is_file())


def _report(shares: Mapping[str, float], failures: dict[str, str]) -> FormatReport:
    worst = min(shares, key=lambda name: shares[name])
    return FormatReport(
        files=len(shares),
        mean=percent(list(shares.values())),
        worst=percent([shares[worst]]),
        worst_file=worst,
        failures=failures,
    )


def main() -> None:
    """Print the figures of a set as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    print(json.dumps(parsing(arguments.directory), indent=2))


if __name__ == "__main__":
    main()

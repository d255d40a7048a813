"""Find evidence as a coding agent does: python benchmarks/files.py DIR DIR --limit 100.

A scripted agent takes the words of a question, greps for them, and reads lines around the matches. It does
so in real files with ripgrep (`rg`, or grep where that is missing), and in the same documents with
`engine.files`; `context` is one call. What counts is the share of the evidence (spans that answer) of which
at least half was shown within N calls and M tokens.
"""

import asyncio
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Protocol

from packing import facts, read_cases
from results import Result, option_parser

from conspectus import NewDocument, Query, Settings
from conspectus.engine import Engine
from conspectus.evals.datasets import read_retrieval_set, spread
from conspectus.evals.stores import fresh_engine
from conspectus.model.files import parse_path
from conspectus.providers.tokenizers import counter
from conspectus.text.analyzer import STOP_WORDS

LIMITS = ((1, 1_000), (3, 2_000), (6, 4_000))
"""Of calls and tokens."""
GREP_TOKENS, READ_TOKENS = 700, 500
AROUND = 10
WORDS = 6
COUNT = counter("o200k_base")
Line = tuple[str, int, str]
"""Key, number and text of a line."""


@dataclass(frozen=True)
class Shown:
    """What one call showed: characters of documents, and its size in tokens."""

    spans: Sequence[tuple[str, int, int]]
    tokens: int
    lines: Sequence[Line] = ()


class Tools(Protocol):
    """What the agent works with."""

    async def grep(self, words: Sequence[str]) -> Shown:
        """Lines with any of the words."""
        ...

    async def read(self, key: str, line: int) -> Shown:
        """The lines around a line."""
        ...


class RealFiles:
    """Files in a folder, with ripgrep or grep."""

    def __init__(self, folder: Path, texts: Mapping[str, str]) -> None:
        self._folder, self._texts = folder, texts
        self._keys = {str(number): key for number, key in enumerate(texts)}
        self._starts = {key: starts(text) for key, text in texts.items()}
        for number, key in self._keys.items():
            (folder / number).write_text(texts[key], encoding="utf-8", newline="")

    async def grep(self, words: Sequence[str]) -> Shown:
        """The first lines of the output that fit."""
        pattern = "|".join(map(re.escape, words))
        rg = [
            "rg",
            "-in",
            "--no-heading",
            "--sort",
            "path",
            "-M",
            "400",
            "--max-columns-preview",
            "-e",
            pattern,
        ]
        plain = ["grep", "-rinE", "-e", pattern]
        command = [*(rg if shutil.which("rg") else plain), "."]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=self._folder, capture_output=True, text=True, check=False
        )
        lines, size = [], 0
        for row in done.stdout.split("\n"):
            match = re.match(r"\./(\d+):(\d+):(.*)", row)
            if match is None:
                continue
            key, text = self._keys[match[1]], match[3][:400]
            size += COUNT(f"{key}:{match[2]}:{text}\n")
            if size > GREP_TOKENS:
                break
            lines.append((key, int(match[2]), text))
        spans = [(key, at := self._starts[key][number - 1], at + len(text)) for key, number, text in lines]
        return Shown(spans, min(size, GREP_TOKENS), lines)

    async def read(self, key: str, line: int) -> Shown:
        """As much as fits."""
        begins = self._starts[key]
        start = begins[max(0, line - 1 - AROUND)]
        end = begins[min(len(begins) - 1, line + AROUND)] if line + AROUND < len(begins) else None
        text = self._texts[key][start:end]
        while COUNT(text) > READ_TOKENS:
            text = text[: len(text) * 9 // 10]
        return Shown([(key, start, start + len(text))], COUNT(text))


class OurFiles:
    """The same documents in a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def grep(self, words: Sequence[str]) -> Shown:
        """Likely files first."""
        pattern = "|".join(map(re.escape, words))
        matches = await self._engine.files.grep(pattern, ignore_case=True, limit=300, max_tokens=GREP_TOKENS)
        lines = [
            (parse_path(file.path).key, line.number, line.text)
            for file in matches.files
            for line in file.lines
        ]
        spans = [
            (parse_path(file.path).key, line.start, line.end) for file in matches.files for line in file.lines
        ]
        return Shown(spans, matches.tokens, lines)

    async def read(self, key: str, line: int) -> Shown:
        """As much as fits."""
        path = f"/default/default/{key.replace('%', '%25')}"
        first = max(1, line - AROUND)
        passage = await self._engine.files.read(
            path, first_line=first, last_line=line + AROUND, max_tokens=READ_TOKENS
        )
        return Shown([(key, passage.start, passage.end)], passage.tokens)


def starts(text: str) -> list[int]:
    """Where the lines of a text begin."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def words_of(question: str) -> list[str]:
    """The words that an agent would look for: names and numbers first, then the longest."""
    words = re.findall(r"\w[\w'-]*\w", question)
    terms = [word for word in words if word.lower() not in STOP_WORDS["english"] and len(word) > 2]
    marked = sorted(dict.fromkeys(terms), key=lambda word: (not re.search(r"[A-Z0-9_]", word), -len(word)))
    return marked[:WORDS]


async def looked(tools: Tools, question: str, *, at_once: bool) -> list[Shown]:
    """A grep for all words, or one for each of three; then reads around the matches."""
    words = words_of(question)
    calls = [await tools.grep(group) for group in ([words] if at_once else [[word] for word in words[:3]])]
    words_by_key: dict[str, set[str]] = {}
    first: dict[str, int] = {}
    for key, number, text in (line for call in calls for line in call.lines):
        words_by_key.setdefault(key, set()).update(word for word in words if word.lower() in text.lower())
        first.setdefault(key, number)
    order = sorted(words_by_key, key=lambda key: -len(words_by_key[key]))
    return calls + [await tools.read(key, first[key]) for key in order[: LIMITS[-1][0]]]


def share(
    evidence: Sequence[tuple[str, tuple[int, int]]], calls: Sequence[Shown], number: int, tokens: int
) -> float:
    """The share of the evidence that the first calls showed by half, within the tokens."""
    spans: list[tuple[str, int, int]] = []
    for call in calls[:number]:
        tokens -= call.tokens
        if tokens < 0:
            break
        spans += call.spans
    return fmean(is_shown(key, span, spans) for key, span in evidence)


def is_shown(key: str, span: tuple[int, int], spans: Sequence[tuple[str, int, int]]) -> bool:
    """Whether half of a span was shown."""
    seen = Counter(
        position
        for name, start, end in spans
        if name == key
        for position in range(max(start, span[0]), min(end, span[1]))
    )
    return 2 * len(seen) >= span[1] - span[0]


async def window(engine: Engine, question: str, tokens: int, keys: Mapping[str, str]) -> Shown:
    """One call of `context`."""
    context = await engine.window(question, tokens)
    return Shown(
        [(keys[citation.document], citation.start, citation.end) for citation in context.citations],
        context.tokens,
    )


Case = tuple[Query, Sequence[tuple[str, tuple[int, int]]]]
Shares = dict[str, list[float]]


async def compared(engine: Engine, ways: Mapping[str, Tools], case: Case, keys: Mapping[str, str]) -> Shares:
    """The shares of one question within the limits, by way."""
    query, evidence = case
    shares: Shares = {}
    for (name, tools), at_once in product(ways.items(), (False, True)):
        calls = await looked(tools, query.query, at_once=at_once)
        shares[f"{name}, {'one grep' if at_once else 'by word'}"] = [
            share(evidence, calls, number, tokens) for number, tokens in LIMITS
        ]
    windows = [await window(engine, query.query, tokens, keys) for _, tokens in LIMITS]
    shares["context"] = [share(evidence, [window_shown], 1, window_shown.tokens) for window_shown in windows]
    return shares


async def measured(directory: Path, cases: Sequence[Case]) -> list[Shares]:
    """The shares of each question of one set."""
    texts = {document.key or "": document.text for document in read_retrieval_set(directory).documents}
    with TemporaryDirectory() as folder:
        async with fresh_engine(Settings.from_environment()) as engine:
            written = await engine.add((NewDocument(text, key=key) for key, text in texts.items()), wait=True)
            keys = {str(done.id): key for done, key in zip(written, texts, strict=True)}
            real = "ripgrep" if shutil.which("rg") else "grep"
            ways: Mapping[str, Tools] = {
                real: RealFiles(Path(folder), texts),
                "engine.files": OurFiles(engine),
            }
            return [await compared(engine, ways, case, keys) for case in cases]


def rows_of(name: str, shares: Sequence[Shares]) -> Iterator[list[str]]:
    """A row of a set for each of the limits."""
    for position, (calls, tokens) in enumerate(LIMITS):
        means = (fmean(question_shares[way][position] for question_shares in shares) for way in shares[0])
        calls_label = f"{calls} call{'s' * (calls > 1)}"
        yield [f"{name}: {calls_label}, {tokens:,} tokens", *(f"{100 * mean:.1f}" for mean in means)]


def main() -> None:
    """Print the table of all sets."""
    parser = option_parser(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="directories of sets")
    parser.add_argument("--limit", type=int, default=100, help="questions of each set (0: all)")
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    for directory in arguments.sets:
        cases = [
            (case.query, [(key, span) for key, span in case.evidence if span is not None])
            for case in facts(directory) or read_cases(directory)
        ]
        some = spread([case for case in cases if case[1]], arguments.limit or None)
        shares = asyncio.run(measured(directory, some))
        rows += rows_of(directory.name, shares)
    title = "Evidence that was shown at least by half; `context` is one call."
    Result.of(title, ["within", *shares[0]], rows).shown("files", save=arguments.save)


if __name__ == "__main__":
    main()

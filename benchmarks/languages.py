"""Questions in several languages, by keywords, by vectors and by both: python benchmarks/languages.py --save.

Paragraphs and questions are those of XQuAD (`corpus.jsonl`, `queries.jsonl`). Every language has a collection
of its own, and `mixed` holds all of them. Recall at 1, of whole questions and of their two longest words; the
last column is what both lack beside the better arm. In the collection of another language, the translation of
a question's paragraph counts.
"""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from results import Result, option_parser

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.model.query import Retriever

XQUAD = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval")) / "xquad"
ARMS: dict[str, tuple[Retriever, ...]] = {
    "keywords": ("keyword",),
    "vectors": ("vector",),
    "both": ("keyword", "vector"),
}
MIXED = "mixed"

Records = Sequence[dict[str, Any]]


def records(name: str) -> Records:
    """The lines of a file of the set."""
    return [json.loads(line) for line in (XQUAD / name).read_text(encoding="utf-8").splitlines()]


def shortened(question: str) -> str:
    """Its two longest words."""
    words = re.findall(r"\w+", question)
    return " ".join(sorted(words, key=len, reverse=True)[:2])


async def fill(engine: Engine, languages: Sequence[str], corpus: Records) -> None:
    """A collection for each language, and one for all."""
    for collection in (*languages, MIXED):
        own = [each for each in corpus if collection in (MIXED, each["id"].split("-")[0])]
        batch = [NewDocument(each["text"], key=each["id"], title=each["title"]) for each in own]
        await engine.add(batch, collection=collection, source="xquad", wait=True)


async def recall(engine: Engine, asked: Records, collection: str, *, short: bool) -> Iterator[float]:
    """Percent of the questions whose paragraph is first, for each arm."""
    found = dict.fromkeys(ARMS, 0)
    for each in asked:
        query = shortened(each["text"]) if short else each["text"]
        for arm, retrievers in ARMS.items():
            hits = (await engine.retrieve(query, collection=collection, limit=1, retrievers=retrievers)).hits
            language = each["lang"] if collection == MIXED else collection
            found[arm] += bool(hits) and hits[0].document.key == f"{language}-{each['pid']}"
    return (100 * count / len(asked) for count in found.values())


async def measure(number: int, embedder: str, folder: str) -> Result:
    """The table of all languages, with the mean of all pairs of two."""
    corpus, queries = records("corpus.jsonl"), records("queries.jsonl")
    languages = sorted({each["lang"] for each in queries})
    rows: list[list[str]] = []
    pairs: list[Sequence[float]] = []
    settings = replace(Settings(), log_level="critical", embedder=embedder)
    async with conspectus.open(folder, settings=settings) as engine:
        await fill(engine, languages, corpus)
        for language, collection, short in product(languages, (*languages, MIXED), (False, True)):
            if short and collection not in (language, MIXED):
                continue
            asked = [each for each in queries if each["lang"] == language]
            asked = asked[:: max(1, len(asked) // number)]
            figures = list(await recall(engine, asked, collection, short=short))
            if collection not in (language, MIXED):
                pairs.append(figures)
            rows.append(row(f"{language}{', two words' if short else ''}; {collection}", figures))
    means = [fmean(column) for column in zip(*pairs, strict=True)]
    rows.append(row("pairs of languages", means))
    columns = ["questions; collection", *ARMS, "both - better arm"]
    return Result.of("XQuAD, recall at 1.", columns, rows)


def row(name: str, figures: Sequence[float]) -> list[str]:
    """The cells of questions in a collection."""
    *arms, both = figures
    return [name, *(f"{each:.1f}" for each in figures), f"{both - max(arms):+.1f}"]


def main() -> None:
    """Print the table."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=1_190, help="of each language, at most")
    parser.add_argument("--embedder", default="minilm", help="minilm or multilingual")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(chosen.questions, chosen.embedder, folder))
    found.shown(f"languages-{chosen.embedder}", save=chosen.save)


if __name__ == "__main__":
    main()

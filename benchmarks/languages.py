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
        collection_records = [
            record for record in corpus if collection in (MIXED, record["id"].split("-")[0])
        ]
        batch = [
            NewDocument(record["text"], key=record["id"], title=record["title"])
            for record in collection_records
        ]
        await engine.add(batch, collection=collection, source="xquad", wait=True)


async def recall(engine: Engine, queries: Records, collection: str, *, short: bool) -> Iterator[float]:
    """Percent of the questions whose paragraph is first, for each arm."""
    counts = dict.fromkeys(ARMS, 0)
    for query_record in queries:
        query = shortened(query_record["text"]) if short else query_record["text"]
        for arm, retrievers in ARMS.items():
            hits = (await engine.retrieve(query, collection=collection, limit=1, retrievers=retrievers)).hits
            language = query_record["lang"] if collection == MIXED else collection
            counts[arm] += bool(hits) and hits[0].document.key == f"{language}-{query_record['pid']}"
    return (100 * count / len(queries) for count in counts.values())


async def measure(number: int, embedder: str, folder: str) -> Result:
    """The table of all languages, with the mean of all pairs of two."""
    corpus, queries = records("corpus.jsonl"), records("queries.jsonl")
    languages = sorted({record["lang"] for record in queries})
    rows: list[list[str]] = []
    pairs: list[Sequence[float]] = []
    settings = replace(Settings(), log_level="critical", embedder=embedder)
    async with conspectus.open(folder, settings=settings) as engine:
        await fill(engine, languages, corpus)
        for language, collection, short in product(languages, (*languages, MIXED), (False, True)):
            if short and collection not in (language, MIXED):
                continue
            selected = [record for record in queries if record["lang"] == language]
            selected = selected[:: max(1, len(selected) // number)]
            figures = list(await recall(engine, selected, collection, short=short))
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
    return [name, *(f"{figure:.1f}" for figure in figures), f"{both - max(arms):+.1f}"]


def main() -> None:
    """Print the table."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=1_190, help="of each language, at most")
    parser.add_argument("--embedder", default="minilm", help="minilm or multilingual")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = asyncio.run(measure(arguments.questions, arguments.embedder, folder))
    table.shown(f"languages-{arguments.embedder}", save=arguments.save)


if __name__ == "__main__":
    main()

"""What feedback does to later queries: python benchmarks/feedback.py DIR DIR --limit 400.

Each set is stored. For half of its queries, an editor says which of the ten best passages are relevant
(`used`), and which of the best three are not (`wrong`). nDCG@10 is measured before and after: of the same
queries, of their content words alone, in reverse order, and of the other half.
"""

import argparse
import asyncio
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from conspectus import Settings
from conspectus.engine import Engine
from conspectus.evals.datasets import JudgedQuery, read_retrieval_set, spread
from conspectus.evals.measures import ndcg
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.text.analyzer import STOP_WORDS

EMPTY = frozenset().union(*STOP_WORDS.values())
USED, WRONG = 10, 3


def as_keywords(query: JudgedQuery) -> JudgedQuery:
    """The same query in other words than a sentence: content words, the last first."""
    words = [word for word in re.findall(r"\w+", query.text) if word.casefold() not in EMPTY]
    return replace(query, text=" ".join(reversed(words)) or query.text)


async def quality(engine: Engine, queries: Sequence[JudgedQuery], keys: Mapping[str, str]) -> float:
    """Mean nDCG@10 of documents, by their best chunks."""
    gains = []
    for query in queries:
        hits = (await engine.retrieve(query.text, filter=query.where, limit=50)).hits
        ranking = list(dict.fromkeys(keys[hit.document.id] for hit in hits))
        gains.append(ndcg(ranking, query.grades, depth=10))
    return round(100 * fmean(gains), 1)


async def judge(engine: Engine, queries: Sequence[JudgedQuery], keys: Mapping[str, str]) -> int:
    """Give feedback on each query, and return the number of judgments."""
    judgments = 0
    for query in queries:
        hits = (await engine.retrieve(query.text, filter=query.where, limit=USED)).hits
        good = [query.grades.get(keys[hit.document.id], 0) > 0 for hit in hits]
        used = [hit.chunk.id for hit, is_good in zip(hits, good, strict=True) if is_good]
        wrong = [hit.chunk.id for hit, is_good in zip(hits[:WRONG], good[:WRONG], strict=True) if not is_good]
        if used or wrong:
            judgments += len(await engine.search.add_feedback(query.text, used=used, wrong=wrong))
    return judgments


async def measured(directory: Path, limit: int, seed: int) -> dict[str, list[float]]:
    """One set."""
    data = read_retrieval_set(directory)
    queries = spread(list(data.queries), limit or None)
    random.Random(seed).shuffle(queries)
    half = len(queries) // 2
    groups = {
        "the same": queries[:half],
        "as keywords": [as_keywords(query) for query in queries[:half]],
        "others": queries[half:],
    }
    async with fresh_engine(Settings.from_environment()) as engine:
        keys = (await store_documents(engine, {"corpus": data.documents}, None))["corpus"]
        before = {name: await quality(engine, group, keys) for name, group in groups.items()}
        judgments = await judge(engine, groups["the same"], keys)
        after = {name: await quality(engine, group, keys) for name, group in groups.items()}
    return {"judgments": [judgments], **{name: [before[name], after[name]] for name in groups}}


def main() -> None:
    """Print the figures of each set as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="+", type=Path, help="directories of sets")
    parser.add_argument("--limit", type=int, default=400, help="queries of each set (0: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of the half")
    arguments = parser.parse_args()
    for directory in arguments.sets:
        figures = asyncio.run(measured(directory, arguments.limit, arguments.seed))
        print(directory.name, json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()

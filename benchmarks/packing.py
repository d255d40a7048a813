"""Judge packing against an oracle: python benchmarks/packing.py DIR DIR --limit 100.

Each set is stored and each question asked once. What is judged is only what happens between the ranked
candidates and the window: of the evidence (sentences, or turns of conversations) that stands in the
candidates, the share that is completely inside windows of several budgets, and the share that a packer could
show that knows the evidence, with the same rendering and the same token counts.

The table has our share of the packer's, and in brackets our share of all evidence.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from results import Result, option_parser

import conspectus
from conspectus import Budget, Query, Settings
from conspectus.engine import Engine
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import read_retrieval_set, spread
from conspectus.evals.evidence_sets import read_evidence_set
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.model.results import Citation, ContextWindow, Hit, Retrieval
from conspectus.providers.tokenizers import counter
from conspectus.text.sentences import sentences
from conspectus.window.build import build_window
from conspectus.window.passages import SelectedChunk, group_pieces, join_passages
from conspectus.window.render import renderer_by_name
from conspectus.window.threads import Threads

BUDGETS = (128, 256, 512, 1024, 2048)
TOKENIZER = "o200k_base"
RENDERER = renderer_by_name("text")
COUNT = counter(TOKENIZER)


@dataclass(frozen=True)
class Unit:
    """A piece of evidence: characters [start, end) of a stored document."""

    document: str
    start: int
    end: int


@dataclass(frozen=True)
class Case:
    """A question and its evidence by keys of documents; None stands for the whole document."""

    query: Query
    evidence: tuple[tuple[str, tuple[int, int] | None], ...]


def units(case: Case, hits: Sequence[Hit], keys: Mapping[str, str]) -> list[tuple[Unit, Hit]]:
    """The evidence that is completely in one of the candidates, with the best of these."""
    hits_by_unit: dict[Unit, Hit] = {}
    for hit in sorted(hits, key=lambda hit: -hit.score):
        for key, span in case.evidence:
            chunk = hit.chunk
            start, end = (chunk.start, chunk.end) if span is None else span
            if keys[hit.document.id] == key and chunk.start <= start < end <= chunk.end:
                text = chunk.text[start - chunk.start : end - chunk.start]
                start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
                hits_by_unit.setdefault(Unit(hit.document.id, start, end), hit)
    return list(hits_by_unit.items())


def oracle(evidence: Sequence[tuple[Unit, Hit]], budget: int) -> float:
    """The most evidence that fits: the smallest first, each cut out of its candidate and rendered."""
    selected: list[SelectedChunk] = []
    count = 0
    for unit, hit in sorted(evidence, key=lambda pair: (pair[0].end - pair[0].start, pair[0].start)):
        start = unit.start - hit.chunk.start
        tried = [*selected, SelectedChunk(len(selected), hit, start, unit.end - hit.chunk.start)]
        if rendered(tried, budget) <= budget:
            selected = tried
            count += 1
    return count / len(evidence)


def rendered(pieces: Sequence[SelectedChunk], budget: int) -> int:
    """What a window of these pieces costs, in the format of a window of this budget."""
    renderer = RENDERER.within(budget)
    groups, number = [], 1
    for group in group_pieces(pieces):
        passages = join_passages(group, number, Threads())
        groups.append(renderer.group(passages))
        number += len(passages)
    return renderer.render_window(groups).tokens(COUNT)


def cited_share(window: ContextWindow, evidence: Sequence[tuple[Unit, Hit]]) -> float:
    """The share of the evidence of which the window cites every character."""
    return fmean(covered(window.citations, unit) for unit, _ in evidence)


def covered(citations: Sequence[Citation], unit: Unit) -> bool:
    """Whether citations name every character of it."""
    reached = unit.start
    for citation in sorted(citations, key=lambda cited: cited.start):
        if citation.document == unit.document and citation.start <= reached:
            reached = max(reached, citation.end)
    return reached >= unit.end


async def judged(engine: Engine, cases: AsyncIterator[Case], keys: Mapping[str, str]) -> list[str]:
    """The number of questions that have evidence in their candidates, and the shares by budget."""
    ours: list[list[float]] = []
    best: list[list[float]] = []
    async for case in cases:
        retrieval: Retrieval = await engine.retrieve(case.query)
        evidence = units(case, retrieval.hits, keys)
        if evidence:
            windows = [
                build_window(retrieval, Budget(budget, TOKENIZER), RENDERER, COUNT) for budget in BUDGETS
            ]
            ours.append([cited_share(window, evidence) for window in windows])
            best.append([oracle(evidence, budget) for budget in BUDGETS])
    columns = (map(fmean, zip(*shares, strict=True)) for shares in (ours, best))
    shares = (f"{100 * a / b:.1f} ({100 * a:.1f})" for a, b in zip(*columns, strict=True))
    return [str(len(ours)), *shares]


async def measured(directory: Path, limit: int, store: Path | None) -> list[str]:
    """One set, stored anew, or in a store that holds it with its keys beside it."""
    settings = Settings.from_environment()
    talk = (directory / "messages.jsonl").exists()
    if store is not None:
        keys = json.loads(store.with_suffix(".json").read_text(encoding="utf-8"))
        async with conspectus.open(str(store), settings=settings) as engine:
            return await judged(engine, cases(engine, directory, limit, talk=talk), keys)
    async with fresh_engine(settings) as engine:
        sources = (
            read_conversations(directory).conversations
            if talk
            else {"corpus": read_retrieval_set(directory).documents}
        )
        keys_by_source = await store_documents(engine, sources, None)
        keys = {document: key for some in keys_by_source.values() for document, key in some.items()}
        return await judged(engine, cases(engine, directory, limit, talk=talk), keys)


async def cases(engine: Engine, directory: Path, limit: int, *, talk: bool) -> AsyncIterator[Case]:
    """The questions of a set with what answers them."""
    if talk:
        conversation_set = read_conversations(directory)
        queries = QueryBuilder(engine, conversation_set)
        for question in spread(
            [question for question in conversation_set.questions if question.evidence],
            limit or None,
        ):
            evidence = tuple((key, None) for key in sorted(question.evidence))
            yield Case(await queries.query(question), evidence)
        return
    for case in spread(facts(directory) or read_cases(directory), limit or None):
        yield case


def read_cases(directory: Path) -> list[Case]:
    """Questions with spans, or the sentences of what is relevant."""
    evidence_set = read_evidence_set(directory, Settings.from_environment())
    return [
        Case(Query(question.text, filter=question.where), tuple(question.spans))
        for question in evidence_set.questions
    ]


def facts(directory: Path) -> list[Case]:
    """HotpotQA names the sentences that answer, by title and number."""
    with (directory / "queries.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if "supporting_facts" not in rows[0]:
        return []
    places = {}
    for document in read_retrieval_set(directory).documents:
        places[document.title] = (document.key or "", list(sentences(document.text)))
    return [
        Case(
            Query(row["text"]),
            tuple(
                (places[title][0], places[title][1][number])
                for title, number in row["supporting_facts"]
                if title in places and number < len(places[title][1])
            ),
        )
        for row in rows
    ]


def main() -> None:
    """Print the table of all sets."""
    parser = option_parser(__doc__)
    parser.add_argument("sets", nargs="+", type=Path, help="directories of sets")
    parser.add_argument("--limit", type=int, default=100, help="questions of each set (0: all)")
    parser.add_argument("--stores", type=Path, help="folder of stores that hold the sets, by name")
    arguments = parser.parse_args()
    rows = []
    for directory in arguments.sets:
        store = arguments.stores / directory.name if arguments.stores else None
        rows.append([directory.name, *asyncio.run(measured(directory, arguments.limit, store))])
    columns = ["set", "questions", *(f"{budget:,} tokens" for budget in BUDGETS)]
    title = "Evidence in windows, of the most that fits; in brackets, of all in the candidates."
    Result.of(title, columns, rows).shown("packing", save=arguments.save)


if __name__ == "__main__":
    main()

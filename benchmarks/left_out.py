"""What constants gain on data that did not choose them: python benchmarks/left_out.py.

Each constant of the ranking of conversations takes other values than the shipped one, alone, on all of
`SETS`. For each set, the other sets choose the value with the highest mean of differences to the shipped one.
The table has the recall@10 of the set with the shipped value, with that value, and with its own best one: the
distance of the last two is what tuning on the set itself would seem to gain.

`--searches FILE`, made by `benchmarks/abstention.py`, adds the confidence: the AUROC of the shipped model, of
one that is learned without the set, and of the best cosine.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from abstention import STORED, Search, area, read_searches
from results import Result, option_parser

from conspectus import bootstrap
from conspectus.evals.conversation_queries import QueryBuilder
from conspectus.evals.conversation_sets import read_conversations
from conspectus.evals.datasets import spread
from conspectus.evals.measures import percent, recall
from conspectus.evals.stores import store_documents
from conspectus.index.bm25 import Bm25
from conspectus.model.index import TermStatistic
from conspectus.model.query import Query
from conspectus.retrieval import counting, fusion, ranking
from conspectus.retrieval.profiles import PLAIN

FOLDER = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
SETS = ("locomo", "beam_100k", "gitter_livechat", "irc_disentanglement", "longmemeval_sample")
DEPTH = 10
TRAINING = Path(__file__).resolve().parents[1] / "scripts" / "train_confidence.py"
REPORTED = re.compile(r"(.+), (removed|none), ([\d.]+) / \d+, ([\d.]+) / \d+")
"""A line that the training reports: set, what lacks, AUROC of the cosine and of the confidence without it."""


@dataclass(frozen=True)
class Constant:
    """A fitted constant: its shipped value, the values tried, and a function that sets it."""

    name: str
    shipped: float
    values: Sequence[float]
    assign: Callable[[float], None]


@dataclass(frozen=True)
class Prepared:
    """A query and the turns that answer it."""

    query: Query
    evidence: frozenset[str]


def assign_source_b(value: float) -> None:
    """Set the length normalization in named sources."""

    def for_terms(parameters: Bm25, terms: Sequence[TermStatistic]) -> Bm25:
        if any(term.source_idf is not None for term in terms):
            return replace(parameters, b=value)
        return parameters

    type.__setattr__(Bm25, "for_terms", for_terms)


def assign_fusion(field: str, value: float) -> None:
    """Set a weight of the fusion of conversations, and `unreached` of all others."""
    if field == "unreached":
        fusion.DEFAULT_FUSION = replace(fusion.DEFAULT_FUSION, unreached=value)
    changed = replace(fusion.CONVERSATION_FUSION, **{field: value})
    vars(ranking)["CONVERSATION_FUSION"] = changed


def assign_people(field: str, value: float) -> None:
    """Set the bound of a part in conversations between people."""
    people = replace(PLAIN.people, **{field: value})
    vars(ranking)["PLAIN"] = replace(PLAIN, people=people)


def assign_assistant(field: str, value: float) -> None:
    """Set the bound of a part in conversations with an assistant."""
    assistant = replace(PLAIN.assistant, **{field: value})
    vars(ranking)["PLAIN"] = replace(PLAIN, assistant=assistant)


def assign_repeated_thread(value: float) -> None:
    """Set what a better text of the same thread costs where a number is asked for."""
    vars(ranking)["repeated_thread_penalty"] = partial(counting.repeated_thread_penalty, weight=value)


def list_constants() -> list[Constant]:
    """Return the fitted constants of the ranking of conversations."""
    people, assistant = PLAIN.people, PLAIN.assistant
    halves = (0.5, 1.5)
    parts = [
        Constant(f"{part} (people)", weight, [factor * weight for factor in halves], partial(assign, part))
        for part, weight, assign in (
            ("neighbors", people.neighbors, assign_people),
            ("thread", people.thread, assign_people),
            ("speaker", people.speaker, assign_people),
            ("reply", people.reply, assign_people),
            ("date", people.date, assign_people),
            ("question", people.question, assign_people),
        )
    ]
    parts += [
        Constant(f"{part} (assistant)", weight, [factor * weight for factor in halves], partial(assign, part))
        for part, weight, assign in (
            ("neighbors", assistant.neighbors, assign_assistant),
            ("role", assistant.role, assign_assistant),
        )
    ]
    conversation = fusion.CONVERSATION_FUSION
    return [
        Constant("b in named sources", Bm25().source_b, (0.25, 0.4, 0.6, 0.75), assign_source_b),
        *(
            Constant(field, getattr(conversation, field), values, partial(assign_fusion, field))
            for field, values in (("unreached", (0.0, -15.0, -60.0)), ("intercept", (-0.6, 0.2)))
        ),
        Constant(
            "repeated thread", counting.REPEATED_THREAD_WEIGHT, (0.0, 0.015, 0.06), assign_repeated_thread
        ),
        *parts,
    ]


async def measure(name: str, store: str, limit: int, constants: Sequence[Constant]) -> dict[str, list[float]]:
    """Return the recall@10 of a set by constant: with the shipped value, then with each other one."""
    async with bootstrap.open(store) as engine:
        talks = read_conversations(FOLDER / name)
        stored = await store_documents(engine, talks.conversations, None)
        keys = {document: key for of_source in stored.values() for document, key in of_source.items()}
        builder = QueryBuilder(engine, talks)
        questions = [
            Prepared(await builder.query(question), question.evidence)
            for question in spread(talks.questions, limit)
        ]

        async def ask_all() -> float:
            shares = []
            for question in questions:
                hits = (await engine.retrieve(replace(question.query, limit=2 * DEPTH))).hits
                turns = list(dict.fromkeys(keys[hit.document.id] for hit in hits))
                shares.append(recall(turns, question.evidence, depth=DEPTH))
            return percent(shares)

        shipped = await ask_all()
        figures: dict[str, list[float]] = {}
        for constant in constants:
            figures[constant.name] = [shipped]
            for value in constant.values:
                constant.assign(value)
                figures[constant.name].append(await ask_all())
            constant.assign(constant.shipped)
        return figures


def chosen_without(figures: Mapping[str, Sequence[float]], left_out: str) -> int:
    """Return the position of the value that the other sets choose; the first one is the shipped one."""
    others = [of_set for name, of_set in figures.items() if name != left_out]
    means = [fmean(of_set[number] - of_set[0] for of_set in others) for number in range(len(others[0]))]
    return int(np.argmax(means))


def constant_rows(
    constants: Sequence[Constant], figures: Mapping[str, Mapping[str, Sequence[float]]]
) -> Iterator[list[str]]:
    """Return a row for each constant and set."""
    for constant in constants:
        of_constant = {name: of_set[constant.name] for name, of_set in figures.items()}
        values = [constant.shipped, *constant.values]
        for name, of_set in of_constant.items():
            chosen = chosen_without(of_constant, name)
            yield [
                constant.name,
                name,
                f"{constant.shipped:g}: {of_set[0]:.1f}",
                f"{values[chosen]:g}: {of_set[chosen]:.1f}",
                f"{values[int(np.argmax(of_set))]:g}: {max(of_set):.1f}",
            ]


def confidence_rows(path: Path) -> Iterator[list[str]]:
    """Return a row for each set of searches: AUROC of the shipped confidence, and of one without the set."""
    command = [sys.executable, str(TRAINING), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(TRAINING.parents[1])}
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    searches: dict[str, list[Search]] = {}
    for search in read_searches(path):
        searches.setdefault(search.set, []).append(search)
    for line in printed.splitlines():
        measured = REPORTED.fullmatch(line)
        if measured is not None:
            name, answers, cosine, without = measured.groups()
            compared = [search for search in searches[name] if search.answers in (STORED, answers)]
            is_answerable = np.array([search.answers == STORED for search in compared])
            shipped = area(np.array([search.confidence for search in compared]), is_answerable)
            yield ["confidence", f"{name}, {answers}", f"{100 * shipped:.1f}", without, f"cosine: {cosine}"]


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser.add_argument("--only", nargs="*", choices=SETS, default=list(SETS), help="sets of conversations")
    parser.add_argument("--questions", type=int, default=150, help="most questions of a set")
    parser.add_argument("--stores", type=Path, help="keep the stores here for another run")
    parser.add_argument("--searches", type=Path, help="searches of benchmarks/abstention.py")
    return parser.parse_args()


def main() -> None:
    """Print the table of all constants."""
    arguments = arguments_of(option_parser(__doc__))
    constants = list_constants()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            store = (arguments.stores or Path(folder)) / name
            figures[name] = asyncio.run(measure(name, str(store), arguments.questions, constants))
    rows = list(constant_rows(constants, figures)) if len(figures) > 1 else []
    if arguments.searches:
        rows += confidence_rows(arguments.searches)
    columns = ["constant", "set left out", "as shipped", "chosen by the other sets", "best on the set itself"]
    title = "Recall@10 of conversations by one constant at a time, and AUROC of the confidence."
    Result.of(title, columns, rows).shown("left-out", save=arguments.save)


if __name__ == "__main__":
    main()

"""Evaluate trust: after generated attack histories, no level has risen and no quarantined text is shown."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from typing import Final, TypedDict, cast

from conspectus import bootstrap
from conspectus.errors import InvalidInput, NotFound
from conspectus.evals.stores import fresh_folder
from conspectus.evals.trust_statements import PLACE, History, HistoryStore
from conspectus.evals.trust_steps import STEPS, WRITES, EchoModel, Step
from conspectus.model.query import EVERYWHERE
from conspectus.model.trust import MinTrust, least
from conspectus.ports import Progress
from conspectus.settings import Settings

LEVELS: Final[tuple[MinTrust, ...]] = ("trusted", "standard", "untrusted")
STORE = 250
"""Number of histories in one store, which write and copy together."""
TOGETHER = 20
"""Number of histories that one query checks."""
LIMIT = 500
TOKENS = 50_000
"""Limits that results of histories that are checked together stay below."""


class TrustReport(TypedDict):
    """Numbers of histories, writes, steps that copy text, and checks; the last two must be 0."""

    histories: int
    writes: int
    laundering: int
    checked: int
    quarantined: int
    levels_raised: int
    quarantined_shown: int


async def trust(
    *,
    histories: int = 10_000,
    seed: int = 0,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> TrustReport:
    """Return what generated attack histories did.

    Each writes through several ways, claims higher levels, and copies text by export and import, changes,
    answers of a model and summaries. Indexes are rebuilt at the end of each store. Then each statement is
    searched at each level, and in windows, lists and exports. Every processor works on a store.
    """
    settings = replace(settings or Settings.from_environment(), embedder="none")
    counts: Counter[str] = Counter()
    stores = [range(first, min(first + STORE, histories)) for first in range(0, histories, STORE)]
    done = 0
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        work = [processes.submit(_in_one_store, numbers, seed, settings) for numbers in stores]
        for store_counts in asyncio.as_completed(map(asyncio.wrap_future, work)):
            counts.update(await store_counts)
            done += min(STORE, histories - done)
            if progress is not None:
                progress("histories", done, histories)
    counts["histories"] = histories
    return cast(TrustReport, {name: counts[name] for name in TrustReport.__annotations__})


def _in_one_store(numbers: range, seed: int, settings: Settings) -> Counter[str]:
    """Return what these histories did, in a process of its own."""
    return asyncio.run(_run(numbers, seed, settings))


async def _run(numbers: range, seed: int, settings: Settings) -> Counter[str]:
    counts: Counter[str] = Counter()
    histories = [History(number, random.Random(f"{seed} {number}")) for number in numbers]
    with fresh_folder() as folder:
        async with bootstrap.open(folder, settings=settings, chat_model=EchoModel()) as engine:
            store = HistoryStore(engine, random.Random(f"{seed} {numbers}"), histories)
            counts["writes"] = await _take(WRITES, store)
            counts["laundering"] = await _take(STEPS, store)
            await engine.maintenance.reindex()
            lines = [
                line
                for scope in store.scopes
                for line in (await store.engine.memory.export(scope=scope)).lines
            ]
            with suppress(NotFound):
                lines.append(await store.engine.graph.export(graph=PLACE))
            exported = "\n".join(lines)
            for start in range(0, len(histories), TOGETHER):
                await _check(store, histories[start : start + TOGETHER], exported, counts)
    return counts


async def _take(steps: Sequence[Step], store: HistoryStore) -> int:
    """Have each history take one to four steps by chance; return their number."""
    left = [(history, history.chance.randint(1, 4)) for history in store.histories]
    for number in range(4):
        histories_by_step: dict[Step, list[History]] = {}
        for history in (history for history, most in left if number < most):
            histories_by_step.setdefault(history.chance.choice(steps), []).append(history)
        for step, histories in histories_by_step.items():
            await step(store, histories)
    return sum(most for _, most in left)


async def _check(
    store: HistoryStore, histories: Sequence[History], exported: str, counts: Counter[str]
) -> None:
    statements = {statement.mark: statement for history in histories for statement in history.statements}
    words = " ".join(statement.word for statement in statements.values())
    window = await store.engine.window(words, TOKENS, collection=EVERYWHERE, limit=LIMIT)
    texts = [window.text]
    for lowest in LEVELS:
        retrieval = await store.engine.retrieve(words, collection=EVERYWHERE, limit=LIMIT, min_trust=lowest)
        if len(retrieval.hits) == LIMIT or window.tokens > TOKENS / 2:
            raise InvalidInput("histories", "copy more than fits into a result; check fewer together")
        for hit in retrieval.hits:
            levels = [statement.level for mark, statement in statements.items() if mark in hit.chunk.text]
            allowed = least(hit.document.trust, *levels) == hit.document.trust
            demanded = least(hit.document.trust, lowest) == lowest
            counts["levels_raised"] += bool(levels) and not (allowed and demanded)
            texts.append(hit.chunk.text)
    if store.scopes:
        scope = store.chance.choice(list(store.scopes))
        notes = await store.engine.memory.window(words, TOKENS, scope=scope, limit=LIMIT)
        counts["levels_raised"] += sum(memory.document.trust != "trusted" for memory in notes.notes)
        texts.append(notes.text)
    everything = "\n".join([*texts, exported])
    for mark, statement in statements.items():
        counts["checked"] += 1
        counts["quarantined"] += statement.hidden and mark not in everything
        counts["quarantined_shown"] += statement.hidden and mark in everything


def has_failed(report: Mapping[str, object]) -> bool:
    """Return whether a level rose or quarantined text was shown."""
    return bool(report["levels_raised"] or report["quarantined_shown"])

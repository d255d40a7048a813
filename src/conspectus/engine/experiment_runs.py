"""The job of a run: asks the questions of a set, and measures their windows."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import cast

from conspectus.engine.context import EngineContext
from conspectus.engine.experiment_measures import mean_interval, share_of_evidence
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.errors import Conflict
from conspectus.ingest.job_execution import Outcome, Tell
from conspectus.model.experiments import (
    Passage,
    Question,
    QuestionShares,
    RunFigure,
    RunQueryOptions,
    RunWindow,
    StoredRun,
    run_options_from_json,
)
from conspectus.model.jobs import Job
from conspectus.model.query import QueryWindowOptions


class RunJobs(Service, checked=False):
    """Runs of question sets, with the permissions of the person who started them."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._store = context.parts.experiments
        self._searcher = Searcher(context, uses_defaults=False)

    async def perform(self, job: Job, tell: Tell) -> Outcome:
        """Ask the questions that no earlier attempt asked. If it is cancelled, the windows so far stay."""
        stored = await self._store.get_run_of_job(job.id)
        if stored is None:
            raise Conflict("job", job.id, "its run was deleted")
        access = await self._authorized.collection(stored.collection)
        access.require("editor", "run a question set")
        sources = access.readable_sources
        questions = [
            question
            for question in await self._store.questions(stored.run.set, sources)
            if not question.changed
        ]
        if not questions:
            raise Conflict("question set", stored.run.set, "has no question whose documents are unchanged")
        measured = {shares.question for shares in await self._store.shares(stored.run.id, sources)}
        for number, question in enumerate(questions):
            tell(number, len(questions))
            if question.id not in measured:
                windows = await self._ask(question, stored)
                await self._store.add_windows(stored.run.id, question.id, windows)
        shares = await self._store.shares(stored.run.id, sources)
        figures = await asyncio.to_thread(_figures_of, stored.run.max_tokens, shares)
        await self._store.finish_run(stored.run.id, figures)
        tell(len(questions), len(questions))
        return Outcome({"questions": len(shares)})

    async def _ask(self, question: Question, stored: StoredRun) -> list[RunWindow]:
        """Return the windows of a question, one for each budget."""
        options: RunQueryOptions = run_options_from_json(stored.run.options)
        window_options = cast(QueryWindowOptions, {**options, "collection": stored.collection})
        windows = []
        for max_tokens in stored.run.max_tokens:
            start = perf_counter()
            _, window = await self._searcher.window(question.query, max_tokens, window_options)
            milliseconds = (perf_counter() - start) * 1_000
            passages = tuple(
                Passage(citation.document, citation.start, citation.end) for citation in window.citations
            )
            share = share_of_evidence(question.evidence, passages)
            windows.append(RunWindow(max_tokens, window.tokens, milliseconds, share, passages))
        return windows


def _figures_of(budgets: Sequence[int], questions: Sequence[QuestionShares]) -> list[RunFigure]:
    """Return the mean share at each budget with its interval, in percent."""
    figures = []
    for position, max_tokens in enumerate(budgets):
        percents = [100 * question.shares[position] for question in questions]
        if percents:
            low, high = mean_interval(percents)
            mean = sum(percents) / len(percents)
            figures.append(RunFigure(max_tokens, round(mean, 2), round(low, 2), round(high, 2)))
    return figures

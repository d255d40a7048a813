"""How often the sentence that answers a question is inside a window of so many tokens."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from conspectus.engine import Engine
from conspectus.errors import InvalidInput
from conspectus.evals.evidence_sets import EvidenceQuestion, by_kind, read_evidence_set
from conspectus.evals.metrics import percent
from conspectus.evals.run import fresh_engine, stored
from conspectus.model.query import Budget, Query
from conspectus.model.results import Citation
from conspectus.ports import Progress
from conspectus.settings import Settings
from conspectus.text.clean import Span

BUDGETS = (128, 256, 512, 1024)


async def evidence(
    directory: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    limit: int | None = None,
    pages: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, float]]:
    """The share of the evidence inside windows of so many tokens of o200k_base, from 0 to 100, by kind.

    A sentence counts where all of its characters are cited. With `limit`, so many questions of each kind are
    asked; `pages` is what `read_evidence_set` says. Raises InvalidInput for a directory without such a set.
    """
    if any(budget < 0 for budget in budgets):
        raise InvalidInput("budget", "must not be negative")
    report_progress = progress or _silent
    chosen = settings or Settings.from_environment()
    given = read_evidence_set(Path(directory), chosen, pages=pages)
    async with fresh_engine(chosen) as engine:
        keys = (await stored(engine, {"corpus": given.documents}, progress))["corpus"]
        report: dict[str, dict[str, float]] = {}
        for kind, questions in by_kind(given.questions, limit).items():
            shares = []
            for done, question in enumerate(questions, start=1):
                shares.append([await _share(engine, question, budget, keys) for budget in budgets])
                report_progress(f"asking {kind}", done, len(questions))
            figures = map(percent, zip(*shares, strict=True))
            report[kind] = {**dict(zip(map(str, budgets), figures, strict=True)), "asked": len(questions)}
    return report


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


async def _share(engine: Engine, question: EvidenceQuestion, budget: int, keys: Mapping[str, str]) -> float:
    query = Query(question.text, where=question.where)
    window = await engine.window(query, Budget(budget, tokenizer="o200k_base"))
    cited: dict[str, list[Citation]] = defaultdict(list)
    for citation in window.citations:
        cited[keys[citation.document]].append(citation)
    return fmean(_covers(cited[key], span) for key, span in question.spans)


def _covers(citations: Sequence[Citation], span: Span) -> bool:
    """Whether citations of one document name every character of the span."""
    reached, end = span
    for citation in sorted(citations, key=lambda each: each.start):
        if citation.start <= reached:
            reached = max(reached, citation.end)
    return reached >= end

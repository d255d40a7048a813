"""Evaluate whether windows contain the evidence of an answer."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypedDict, Unpack

from conspectus.engine import Engine
from conspectus.engine.experiment_measures import covers
from conspectus.errors import InvalidInput
from conspectus.evals.compare import BY_QUESTION, WINDOWS
from conspectus.evals.evidence_sets import EvidenceQuestion, by_kind, read_evidence_set
from conspectus.evals.measures import Figures, percent
from conspectus.evals.stores import fresh_engine, store_documents
from conspectus.model.query import Budget, Query
from conspectus.model.results import Citation
from conspectus.ports import Progress
from conspectus.settings import Settings
from conspectus.text.sentences import Span

BUDGETS = (128, 256, 512, 1024)


class EvidenceOptions(TypedDict, total=False):
    """Budgets in tokens (o200k_base), the maximum number of questions of each kind, the field by which
    documents are joined to pages (`read_evidence_set`), and whether the windows are part of the report.
    """

    budgets: Sequence[int]
    limit: int | None
    pages: str | None
    windows: bool


Cited = Sequence[tuple[str, Citation]]
"""The citations of a window in reading order, each with the key of its document."""


async def evidence(
    directory: str | Path,
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
    **options: Unpack[EvidenceOptions],
) -> dict[str, dict[str, object]]:
    """Return the share of evidence in windows of `budgets` tokens (o200k_base), 0 to 100, by kind.

    `by_question` has the share of each question, from 0 to 1. A sentence counts if all its characters are
    cited. With `windows`, the report also has each question with its evidence and the passages of its
    windows. Raises InvalidInput for a directory without such a set.
    """
    budgets = options.get("budgets", BUDGETS)
    if any(maximum < 0 for maximum in budgets):
        raise InvalidInput("max_tokens", "must not be negative")
    report_progress = progress or (lambda *_: None)
    settings = settings or Settings.from_environment()
    data = read_evidence_set(Path(directory), settings, pages=options.get("pages"))
    texts = {document.key or "": document.text for document in data.documents}
    async with fresh_engine(settings) as engine:
        keys = (await store_documents(engine, {"corpus": data.documents}, progress))["corpus"]
        report: dict[str, dict[str, object]] = {}
        for kind, questions in by_kind(data.questions, options.get("limit")).items():
            shares: Figures = {}
            window_texts: dict[str, object] = {}
            for done, question in enumerate(questions, start=1):
                built = {
                    str(maximum): await _cite_window(engine, question, maximum, keys) for maximum in budgets
                }
                shares[question.id] = {
                    maximum: _measure_coverage(question, cited) for maximum, cited in built.items()
                }
                window_texts[question.id] = _with_passages(question, built, texts)
                report_progress(f"asking {kind}", done, len(questions))
            means = {
                str(maximum): percent([question_shares[str(maximum)] for question_shares in shares.values()])
                for maximum in budgets
            }
            windows = {WINDOWS: window_texts} if options.get("windows") else {}
            report[kind] = {**means, "asked": len(questions), BY_QUESTION: shares, **windows}
    return report


async def _cite_window(
    engine: Engine, question: EvidenceQuestion, max_tokens: int, keys: Mapping[str, str]
) -> Cited:
    query = Query(question.text, filter=question.where)
    window = await engine.window(query, Budget(max_tokens, tokenizer="o200k_base"))
    return [(keys[citation.document], citation) for citation in window.citations]


def _with_passages(
    question: EvidenceQuestion, built: Mapping[str, Cited], texts: Mapping[str, str]
) -> dict[str, object]:
    """Return a question with its evidence, and the passages of its window for each budget."""

    def span(key: str, start: int, end: int) -> dict[str, object]:
        return {"key": key, "start": start, "end": end, "text": texts[key][start:end]}

    return {
        "query": question.text,
        "evidence": [span(key, *limits) for key, limits in question.spans],
        "passages": {
            maximum: [span(key, citation.start, citation.end) for key, citation in cited]
            for maximum, cited in built.items()
        },
    }


def _measure_coverage(question: EvidenceQuestion, window: Cited) -> float:
    cited: dict[str, list[Span]] = defaultdict(list)
    for key, citation in window:
        cited[key].append((citation.start, citation.end))
    return fmean(covers(cited[key], *span) for key, span in question.spans)

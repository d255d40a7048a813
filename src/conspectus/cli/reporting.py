"""What long work and calls to vendors add up to."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from conspectus.cli.options import Common
from conspectus.cli.output import cell, show
from conspectus.cli.session import opened
from conspectus.model.ids import SourceId
from conspectus.model.jobs import EmbeddingRequest, IngestReport, JobRates, RequestTotals


def report_jobs(common: Common) -> None:
    """Show jobs by state, and how many failed or were tried again, by span of time and by source."""
    with opened(common) as session:
        found = session.engine.ingest_report(collection=common.collection)
        homes = session.engine.collections()
        names = {each.id: each.name for home in homes for each in session.engine.sources(collection=home.id)}
    show(found, _report_picture(found, names), as_json=common.json)


def list_requests(
    common: Common,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Most requests to list.")] = 100,
    after: Annotated[int | None, typer.Option(help="Go on after the request of this number.")] = None,
) -> None:
    """List calls to vendors of embeddings and rerankers, newest first."""
    with opened(common) as session:
        found = session.engine.embedding_requests(after=after, limit=limit)
    show(found, _requests_table(found), as_json=common.json)


def total_requests(
    common: Common,
    *,
    hours: Annotated[int, typer.Option(min=1, max=8_784, help="How far to look back.")] = 24,
) -> None:
    """Show what calls to vendors add up to, by kind and model."""
    with opened(common) as session:
        found = session.engine.request_totals(hours=hours)
    show(found, _totals_table(found), as_json=common.json)


def _report_picture(report: IngestReport, names: Mapping[SourceId, str]) -> RenderableType:
    states = plain_table("state", "jobs")
    for state, number in report.states.items():
        states.add_row(state, f"{number:,}")
    spans = _rates_table("last", report.rates)
    sources = _rates_table(
        "source", {names.get(each, str(each)): rates for each, rates in report.sources.items()}
    )
    return Group(states, "", spans, "", sources)


def _rates_table(title: str, rates: Mapping[str, JobRates]) -> Table:
    table = plain_table(title, "ended", "failed", "tried again")
    for name, each in rates.items():
        failed = f"{each.failed:,} ({each.failure_rate} %)"
        table.add_row(cell(name), f"{each.finished:,}", failed, f"{each.retried:,} ({each.retry_rate} %)")
    return table


def _requests_table(requests: Iterable[EmbeddingRequest]) -> Table:
    table = plain_table("number", "when", "kind", "model", "inputs", "tokens", "ms", "status", "error")
    for each in requests:
        numbers = (f"{each.inputs:,}", f"{each.tokens:,}", f"{each.latency:,.0f}")
        ended = (each.status, each.error or "")
        when = f"{each.created:%Y-%m-%d %H:%M:%S}"
        table.add_row(str(each.id), when, each.kind, cell(each.model), *numbers, *ended)
    return table


def _totals_table(totals: Iterable[RequestTotals]) -> Table:
    table = plain_table("kind", "model", "requests", "errors", "inputs", "tokens", "mean ms")
    for each in totals:
        errors = f"{each.errors:,} ({each.error_rate} %)"
        numbers = (f"{each.inputs:,}", f"{each.tokens:,}", f"{each.mean_latency:,.0f}")
        table.add_row(each.kind, cell(each.model), f"{each.requests:,}", errors, *numbers)
    return table


def plain_table(*columns: str) -> Table:
    """A table without lines, whose cells fold."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table

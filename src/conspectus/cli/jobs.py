"""ingest, jobs and requests."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from conspectus.cli.errors import FAILED, NOTHING, PARTIAL, note_next
from conspectus.cli.options import After, Common, PageLimit
from conspectus.cli.output import cell, plain_table, progress, rows_table, show
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.ids import SourceId
from conspectus.model.jobs import (
    FINISHED,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobRates,
    JobState,
    RequestTotals,
    Upload,
)

if TYPE_CHECKING:
    from conspectus.ports import Progress

LOOK_SECONDS = 0.5
ADDRESSES = ("http://", "https://")
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Id of a job.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the jobs end.")]


@dataclass(frozen=True, slots=True)
class Fetching:
    """How a page is fetched and split."""

    method: Annotated[str, typer.Option(help="HTTP method.")] = "GET"
    headers: Annotated[
        Path | None, typer.Option(help="File with one `Name: value` header per line; - is stdin.")
    ] = None
    chunk_size: Annotated[int | None, typer.Option(help="Maximum characters of a chunk.")] = None
    overlap: Annotated[int | None, typer.Option(help="Maximum characters that chunks share.")] = None


def ingest(
    places: Annotated[list[str], typer.Argument(metavar="URL...", help="URLs of pages, or files to upload.")],
    common: Common,
    fetching: Fetching,
    *,
    source: Annotated[
        str | None, typer.Option(help="Source to add to (default: domain, or uploads).")
    ] = None,
    wait: Wait = True,
) -> None:
    """Add web pages with background jobs."""
    headers = None if fetching.headers is None else _headers(fetching.headers)
    pages = [place for place in places if place.lower().startswith(ADDRESSES)]
    files = [Upload(Path(place).name, Path(place)) for place in places if place not in pages]
    sizes = {"chunk_size": fetching.chunk_size, "overlap": fetching.overlap}
    with opened(common, new=True) as session:
        engine, home = session.engine, session.collection
        jobs = [
            engine.jobs.ingest_url(
                page, collection=home, source=source, method=fetching.method, headers=headers, **sizes
            )
            for page in pages
        ]
        if files:
            jobs.append(engine.jobs.ingest_files(files, collection=home, source=source or "uploads"))
        report(session, jobs, common, wait=wait)


def list_jobs(
    common: Common,
    *,
    state: Annotated[
        str | None, typer.Option(help="queued, running, succeeded, failed or cancelled.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number of results.")
    ] = 100,
    after: After = None,
) -> None:
    """List jobs, newest first."""
    with opened(common) as session:
        chosen = _state(state)
        page = session.engine.jobs.list(collection=common.collection, state=chosen, after=after, limit=limit)
    show(page, jobs_table(page.jobs), as_json=common.json)
    note_next(page.next, as_json=common.json)


def get_job(job: JobName, common: Common) -> None:
    """Show a job with its result or error."""
    with opened(common) as session:
        found = session.engine.jobs.get(job)
    show(found, _job_picture(found), as_json=common.json)


def cancel_job(job: JobName, common: Common) -> None:
    """Cancel a queued or running job."""
    with opened(common) as session:
        found = session.engine.jobs.cancel(job)
    show(found, _job_picture(found), as_json=common.json)
    if found.state != "cancelled":
        raise typer.Exit(NOTHING)


def retry_job(job: JobName, common: Common, *, wait: Wait = True) -> None:
    """Retry a failed or cancelled job."""
    with opened(common) as session:
        report(session, [session.engine.jobs.retry(job)], common, wait=wait)


def report_jobs(common: Common) -> None:
    """Show numbers of jobs, failures and retries."""
    with opened(common) as session:
        found = session.engine.jobs.report(collection=common.collection)
        homes = session.engine.collections.list()
        names = {
            each.id: each.name
            for home in homes
            for each in session.engine.collections.sources(collection=home.id)
        }
    show(found, _report_picture(found, names), as_json=common.json)


def list_requests(
    common: Common,
    *,
    limit: PageLimit = 100,
    after: Annotated[int | None, typer.Option(help="Number of the last request to skip.")] = None,
) -> None:
    """List model provider requests, newest first."""
    with opened(common) as session:
        found = session.engine.jobs.requests(after=after, limit=limit)
    show(found, _requests_table(found), as_json=common.json)


def summarize_requests(
    common: Common,
    *,
    hours: Annotated[int, typer.Option(min=1, max=8_784, help="Number of hours to include.")] = 24,
) -> None:
    """Show totals of model provider requests by model."""
    with opened(common) as session:
        found = session.engine.jobs.request_totals(hours=hours)
    show(found, _totals_table(found), as_json=common.json)


def report(session: Session, jobs: Sequence[Job], common: Common, *, wait: bool) -> None:
    """Show jobs, once they ended if `wait`; the exit code tells if one failed."""
    found = _waited(session, jobs) if wait else list(jobs)
    show(found, jobs_table(found), as_json=common.json)
    bad = [job for job in found if job.state in {"failed", "cancelled"}]
    if bad:
        raise typer.Exit(FAILED if len(bad) == len(found) else PARTIAL)


def _waited(session: Session, jobs: Sequence[Job]) -> list[Job]:
    with progress() as bars:
        return [_ended(session, job, bars) for job in jobs]


def _ended(session: Session, job: Job, bars: "Progress | None") -> Job:
    while job.state not in FINISHED:
        job = session.engine.jobs.wait(job.id, seconds=LOOK_SECONDS)
        if bars is not None:
            bars(cell(job.title, limit=40).plain, job.done, job.total)
    return job


def jobs_table(jobs: Iterable[Job]) -> RenderableType:
    table = plain_table("id", "kind", "state", "done", "attempts", "title", "error")
    for job in jobs:
        done = f"{job.done}/{job.total}" if job.total else str(job.done)
        texts = (cell(job.title, limit=60), cell(job.error or ""))
        table.add_row(job.id, job.kind, job.state, done, str(job.attempts), *texts)
    return table


def _job_picture(job: Job) -> RenderableType:
    table = plain_table("field", "value")
    facts: dict[str, object] = {
        "id": job.id, "title": job.title, "kind": job.kind, "state": job.state, "attempts": job.attempts,
        "created": job.created, "started": job.started, "finished": job.finished,
        "error": job.error, **(job.result or {}),
    }  # fmt: skip
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, cell(str(value)))
    return table


def _state(name: str | None) -> JobState | None:
    match name:
        case None | "queued" | "running" | "succeeded" | "failed" | "cancelled":
            return name
    raise InvalidInput("state", "must be queued, running, succeeded, failed or cancelled")


def _headers(path: Path) -> dict[str, str]:
    """Headers from a file, as other accounts can read the command line. Errors do not quote them."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("headers", "the file cannot be read as text") from None
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise InvalidInput("headers", "each line must be `Name: value`")
    return {name.strip(): value.strip() for name, _, value in pairs}


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
    rows = (
        (
            name,
            f"{one.finished:,}",
            f"{one.failed:,} ({one.failure_rate} %)",
            f"{one.retried:,} ({one.retry_rate} %)",
        )
        for name, one in rates.items()
    )
    return rows_table((title, "ended", "failed", "retried"), rows)


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

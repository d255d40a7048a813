"""ingest, jobs and requests."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from conspectus.cli.errors import FAILED, PARTIAL
from conspectus.cli.options import After, PageLimit
from conspectus.cli.output import cell, facts_table, progress, rows_table
from conspectus.cli.session import NewSession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.jobs import FINISHED, Job, JobRates, JobState, Upload

if TYPE_CHECKING:
    from conspectus.ports import Progress

POLL_SECONDS = 0.5
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
    session: NewSession,
    fetching: Fetching,
    *,
    source: Annotated[
        str | None, typer.Option(help="Source to add to (default: domain, or uploads).")
    ] = None,
    wait: Wait = True,
) -> None:
    """Add web pages with background jobs."""
    headers = None if fetching.headers is None else _headers(fetching.headers)
    pages = [address for address in places if address.lower().startswith(ADDRESSES)]
    files = [Upload(Path(path).name, Path(path)) for path in places if path not in pages]
    sizes = {"chunk_size": fetching.chunk_size, "overlap": fetching.overlap}
    engine, collection = session.engine, session.collection
    jobs = [
        engine.jobs.ingest_url(
            page, collection=collection, source=source, method=fetching.method, headers=headers, **sizes
        )
        for page in pages
    ]
    if files:
        jobs.append(engine.jobs.ingest_files(files, collection=collection, source=source or "uploads"))
    report(session, jobs, wait=wait)


def list_jobs(
    session: Session,
    *,
    state: Annotated[
        JobState | None, typer.Option(help="queued, running, succeeded, failed or cancelled.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, help="Maximum number of results.")
    ] = 100,
    after: After = None,
) -> None:
    """List jobs, newest first."""
    page = session.engine.jobs.list(
        collection=session.common.collection, state=state, after=after, limit=limit
    )
    session.show_page(page, jobs_table(page.jobs))


def get_job(job: JobName, session: Session) -> None:
    """Show a job with its result or error."""
    stored = session.engine.jobs.get(job)
    session.show(stored, job_picture(stored))


def cancel_job(job: JobName, session: Session) -> None:
    """Cancel a queued or running job."""
    canceled = session.engine.jobs.cancel(job)
    session.show(canceled, job_picture(canceled))
    if canceled.state != "cancelled":
        session.end_with_nothing()


def retry_job(job: JobName, session: Session, *, wait: Wait = True) -> None:
    """Retry a failed or cancelled job."""
    report(session, [session.engine.jobs.retry(job)], wait=wait)


def report_jobs(session: Session) -> None:
    """Show numbers of jobs, failures and retries."""
    job_report = session.engine.jobs.report(collection=session.common.collection)
    names = {
        source.id: source.name
        for collection in session.engine.collections.list()
        for source in session.engine.collections.list_sources(collection=collection.id)
    }
    sources = {names.get(source, str(source)): rates for source, rates in job_report.sources.items()}
    states = rows_table(("state", "jobs"), job_report.states.items())
    picture = Group(states, "", _rates_table("last", job_report.rates), "", _rates_table("source", sources))
    session.show(job_report, picture)


def list_requests(
    session: Session,
    *,
    limit: PageLimit = 100,
    after: Annotated[int | None, typer.Option(help="Number of the last request to skip.")] = None,
) -> None:
    """List model provider requests, newest first."""
    requests = session.engine.jobs.list_requests(after=after, limit=limit)
    columns = ("number", "when", "kind", "model", "inputs", "tokens", "ms", "status", "error")
    rows = (
        (
            str(request.id), request.created, request.kind, request.model, request.inputs, request.tokens,
            f"{request.latency:,.0f}", request.status, request.error,
        )
        for request in requests
    )  # fmt: skip
    session.show(requests, rows_table(columns, rows))


def summarize_requests(
    session: Session,
    *,
    hours: Annotated[int, typer.Option(min=1, max=8_784, help="Number of hours to include.")] = 24,
) -> None:
    """Show totals of model provider requests by model."""
    totals = session.engine.jobs.request_totals(hours=hours)
    columns = ("kind", "model", "requests", "errors", "inputs", "tokens", "mean ms")
    rows = (
        (
            total.kind, total.model, total.requests, f"{total.errors:,} ({total.error_rate} %)", total.inputs,
            total.tokens, f"{total.mean_latency:,.0f}",
        )
        for total in totals
    )  # fmt: skip
    session.show(totals, rows_table(columns, rows))


def report(
    session: Session,
    jobs: Sequence[Job],
    *,
    wait: bool,
    picture: Callable[[Sequence[Job]], RenderableType] | None = None,
) -> None:
    """Print jobs, with `wait` when they have ended; the exit code tells if one failed."""
    current = list(jobs)
    if wait:
        with progress() as bars:
            current = [_ended(session, job, bars) for job in jobs]
    session.show(current, (picture or jobs_table)(current))
    bad = [job for job in current if job.state in {"failed", "cancelled"}]
    if bad:
        raise typer.Exit(FAILED if len(bad) == len(current) else PARTIAL)


def _ended(session: Session, job: Job, bars: "Progress | None") -> Job:
    while job.state not in FINISHED:
        job = session.engine.jobs.wait(job.id, timeout=POLL_SECONDS)
        if bars is not None:
            bars(cell(job.title, limit=40).plain, job.done, job.total)
    return job


def jobs_table(jobs: Iterable[Job]) -> RenderableType:
    """Jobs, one per line."""
    rows = (
        (
            job.id, job.kind, job.state, f"{job.done}/{job.total}" if job.total else str(job.done),
            job.attempts, cell(job.title, limit=60), job.error,
        )
        for job in jobs
    )  # fmt: skip
    return rows_table(("id", "kind", "state", "done", "attempts", "title", "error"), rows)


def job_picture(job: Job) -> RenderableType:
    names = ("id", "title", "kind", "state", "attempts", "created", "started", "finished", "error")
    return facts_table({name: getattr(job, name) for name in names} | dict(job.result or {}))


def _headers(path: Path) -> dict[str, str]:
    """Read headers from a file: command lines are visible to others. Errors do not quote them."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("headers", "the file cannot be read as text") from None
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise InvalidInput("headers", "each line must be `Name: value`")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _rates_table(title: str, rates: Mapping[str, JobRates]) -> Table:
    rows = (
        (name, one.finished, *(f"{n:,} ({rate} %)" for n, rate in counts))
        for name, one in rates.items()
        for counts in [((one.failed, one.failure_rate), (one.retried, one.retry_rate))]
    )
    return rows_table((title, "ended", "failed", "retried"), rows)

"""ingest, jobs and requests: add web pages, manage jobs, and show requests to model providers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import option
from conspectus.cli.errors import FAILED, PARTIAL
from conspectus.cli.output import cell, facts_table, progress, rows_table
from conspectus.cli.session import NewSession, Session
from conspectus.cli.text_input import read_text
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.jobs import (
    FINISHED,
    ChunkOptions,
    EmbeddingRequest,
    IngestReport,
    Job,
    JobRates,
    RequestTotals,
    Upload,
)
from conspectus.model.records import Metadata

if TYPE_CHECKING:
    from conspectus.ports import Progress

POLL_SECONDS = 0.5
URL_PREFIXES = ("http://", "https://")
INGEST: Final = "engine.jobs:JobService.ingest_url"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whether the command waits for its jobs."""

    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the jobs end.")] = True


@dataclass(frozen=True, slots=True)
class Fetching:
    """How a page is fetched and split."""

    method: Annotated[str, option(INGEST, "method")] = "GET"
    headers: Annotated[
        Path | None, typer.Option(help="File with one `Name: value` header per line; - is stdin.")
    ] = None
    chunk_size: Annotated[int | None, option(ChunkOptions, "chunk_size")] = None
    overlap: Annotated[int | None, option(ChunkOptions, "overlap")] = None


def ingest(
    places: Annotated[list[str], typer.Argument(metavar="URL...", help="URLs of pages, or files to upload.")],
    session: NewSession,
    fetching: Fetching,
    *,
    source: Annotated[str | None, option(INGEST, "source")] = None,
    waiting: Waiting,
) -> None:
    """Add web pages with background jobs."""
    headers = None if fetching.headers is None else _headers(fetching.headers)
    pages = [address for address in places if address.lower().startswith(URL_PREFIXES)]
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
    report(session, jobs, wait=waiting.wait)


def _show_cancelled(session: Session, job: Job, _: Arguments) -> None:
    session.show(job, job_picture(job))
    if job.state != "cancelled":
        session.end_with_nothing()


def show_job(session: Session, job: Job, arguments: Arguments) -> None:
    """Print a job that was started; with --wait, once it has ended."""
    report(session, [job], wait=arguments["extra"].wait)


def _show_report(session: Session, job_report: IngestReport, _: Arguments) -> None:
    names = {
        source.id: source.name
        for collection in session.engine.collections.list()
        for source in session.engine.collections.list_sources(collection=collection.id)
    }
    sources = {names.get(source, str(source)): rates for source, rates in job_report.sources.items()}
    states = rows_table(("state", "jobs"), job_report.states.items())
    picture = Group(states, "", _rates_table("last", job_report.rates), "", _rates_table("source", sources))
    session.show(job_report, picture)


def _requests_table(requests: Sequence[EmbeddingRequest]) -> RenderableType:
    columns = ("number", "when", "kind", "model", "inputs", "tokens", "ms", "status", "error")
    rows = (
        (
            str(request.id), request.created, request.kind, request.model, request.inputs, request.tokens,
            f"{request.latency:,.0f}", request.status, request.error,
        )
        for request in requests
    )  # fmt: skip
    return rows_table(columns, rows)


def _totals_table(totals: Sequence[RequestTotals]) -> RenderableType:
    columns = ("kind", "model", "requests", "errors", "inputs", "tokens", "mean ms")
    rows = (
        (
            total.kind, total.model, total.requests, f"{total.errors:,} ({total.error_rate} %)", total.inputs,
            total.tokens, f"{total.mean_latency:,.0f}",
        )
        for total in totals
    )  # fmt: skip
    return rows_table(columns, rows)


def report(
    session: Session,
    jobs: Sequence[Job],
    *,
    wait: bool,
    picture: Callable[[Sequence[Job]], RenderableType] | None = None,
) -> None:
    """Print jobs, with `wait` once they have ended. The exit code tells whether any failed."""
    current = list(jobs)
    if wait:
        with progress() as bars:
            current = [wait_until_ended(session, job, bars) for job in jobs]
    session.show(current, (picture or jobs_table)(current))
    for job in current:
        session.note_by_name(_file_remarks(job.result or {}))
    outcomes = {job.outcome for job in current} - {None}
    if outcomes - {"complete"}:
        raise typer.Exit(PARTIAL if outcomes & {"complete", "partial"} else FAILED)


def _file_remarks(result: Metadata) -> dict[str, str]:
    """Return the notices of files, and why files were skipped or failed, by name, as a job tells it."""
    skipped, failures, notices = (result.get(name) for name in ("skipped_files", "failures", "notices"))
    reasons: dict[str, str] = {}
    if isinstance(notices, Mapping):
        reasons |= {name: str(notice) for name, notice in notices.items()}
    if isinstance(skipped, Mapping):
        reasons |= {name: f"skipped, {reason}" for name, reason in skipped.items()}
    if isinstance(failures, Sequence):
        reasons |= {str(one["name"]): str(one["reason"]) for one in failures if isinstance(one, Mapping)}
    return reasons


def wait_until_ended(session: Session, job: Job, bars: "Progress | None") -> Job:
    """Return a job when it has ended."""
    while job.state not in FINISHED:
        job = session.engine.jobs.wait(job.id, timeout=POLL_SECONDS)
        if bars is not None:
            bars(cell(job.title, limit=40).plain, job.done, job.total)
    return job


def jobs_table(jobs: Iterable[Job]) -> RenderableType:
    """Return jobs, one per line."""
    rows = (
        (
            job.id, job.kind, "partial" if job.outcome == "partial" else job.state,
            f"{job.done}/{job.total}" if job.total else str(job.done),
            job.attempts, cell(job.title, limit=60), job.error,
        )
        for job in jobs
    )  # fmt: skip
    return rows_table(("id", "kind", "state", "done", "attempts", "title", "error"), rows)


def job_picture(job: Job) -> RenderableType:
    names = ("id", "title", "kind", "state", "outcome", "attempts", "created", "started", "finished", "error")
    return facts_table({name: getattr(job, name) for name in names} | dict(job.result or {}))


def _headers(path: Path) -> dict[str, str]:
    """Read headers from a file: command lines are visible to others. Errors do not quote them."""
    lines = read_text(path, "headers").splitlines()
    pairs = [line.partition(":") for line in lines if line.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise InvalidInput("headers", "each line must be `Name: value`")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _rates_table(title: str, rates: Mapping[str, JobRates]) -> Table:
    rows = (
        (
            name, rate.finished, f"{rate.failed:,} ({rate.failure_rate} %)",
            f"{rate.retried:,} ({rate.retry_rate} %)",
        )
        for name, rate in rates.items()
    )  # fmt: skip
    return rows_table((title, "ended", "failed", "retried"), rows)


JOBS_COMMANDS: Final = {
    "list": Command(
        "jobs:JobService.list", "List jobs, newest first.", lambda page: jobs_table(page.jobs),
        any_collection=True, nothing="no jobs",
    ),
    "get": Command("engine.jobs:JobService.get", "Show a job with its result or error.", job_picture),
    "cancel": Command("jobs:JobService.cancel", "Cancel a queued or running job.", show=_show_cancelled),
    "retry": Command(
        "jobs:JobService.retry", "Retry a failed or cancelled job.", extra=Waiting, show=show_job,
    ),
    "report": Command(
        "jobs:JobService.report", "Show numbers of jobs, failures and retries.", show=_show_report,
        any_collection=True,
    ),
}  # fmt: skip

REQUESTS_COMMANDS: Final = {
    "list": Command(
        "jobs:JobService.list_requests", "List model provider requests, newest first.", _requests_table,
        nothing="no requests",
    ),
    "summary": Command(
        "jobs:JobService.request_totals", "Show totals of model provider requests by model.", _totals_table,
    ),
}  # fmt: skip

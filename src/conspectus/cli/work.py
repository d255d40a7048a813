"""ingest, jobs and wiki: long work, what became of it, and stores that a collection is kept in step with."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from conspectus.cli.failures import FAILED, NOTHING, PARTIAL
from conspectus.cli.options import Common, spread
from conspectus.cli.output import cell, note, progress, show
from conspectus.cli.reporting import list_requests, plain_table, report_jobs, total_requests
from conspectus.cli.session import Session, opened, require_here
from conspectus.errors import InvalidInput
from conspectus.model.jobs import FINISHED, Job, JobState, Upload
from conspectus.model.wiki import Connection
from conspectus.ports import Progress

LOOK_SECONDS = 0.5
TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})
ADDRESSES = ("http://", "https://")
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Id of a job.")]
WikiName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a connection.")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Return when it is done, or as soon as it is written down.")
]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a page is asked for, and cut into chunks."""

    method: Annotated[str, typer.Option(help="HTTP method.")] = "GET"
    headers: Annotated[
        Path | None, typer.Option(help="File with a header on each line, as `Name: value`; - is stdin.")
    ] = None
    chunk_size: Annotated[int | None, typer.Option(help="Most characters of a chunk.")] = None
    overlap: Annotated[int | None, typer.Option(help="Characters that a chunk repeats, at most.")] = None


def ingest(
    places: Annotated[
        list[str], typer.Argument(metavar="URL...", help="Addresses of pages; paths of files are sent too.")
    ],
    common: Common,
    asking: Asking,
    *,
    source: Annotated[
        str | None, typer.Option(help="Source to add to. Default: the page's domain; uploads.")
    ] = None,
    wait: Wait = True,
) -> None:
    """Take in web pages by jobs; the same address again replaces the page."""
    headers = None if asking.headers is None else _headers(asking.headers)
    pages = [place for place in places if place.lower().startswith(ADDRESSES)]
    files = [Upload(Path(place).name, Path(place)) for place in places if place not in pages]
    sizes = {"chunk_size": asking.chunk_size, "overlap": asking.overlap}
    with opened(common, new=True) as session:
        engine, home = session.engine, session.collection
        jobs = [
            engine.ingest_url(
                page, collection=home, source=source, method=asking.method, headers=headers, **sizes
            )
            for page in pages
        ]
        if files:
            jobs.append(engine.ingest_files(files, collection=home, source=source or "uploads"))
        _report(session, jobs, common, wait=wait)


def list_jobs(
    common: Common,
    *,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most jobs to list.")] = 100,
    after: Annotated[str | None, typer.Option(help="Go on after a page: its `next`.")] = None,
) -> None:
    """List jobs, newest first, of all collections or of one."""
    with opened(common) as session:
        chosen = _state(state)
        page = session.engine.jobs(collection=common.collection, state=chosen, after=after, limit=limit)
    show(page, _jobs_table(page.jobs), as_json=common.json)
    if page.next and not common.json:
        note(f"there are more: --after {page.next}")


def show_job(job: JobName, common: Common) -> None:
    """Show a job with its error or its result."""
    with opened(common) as session:
        found = session.engine.job(job)
    show(found, _job_picture(found), as_json=common.json)


def cancel_job(job: JobName, common: Common) -> None:
    """Stop a job that waits or runs."""
    with opened(common) as session:
        found = session.engine.cancel_job(job)
    show(found, _job_picture(found), as_json=common.json)
    if found.state != "cancelled":
        raise typer.Exit(NOTHING)


def retry_job(job: JobName, common: Common, *, wait: Wait = True) -> None:
    """Run a job once more that failed or was cancelled."""
    with opened(common) as session:
        _report(session, [session.engine.retry_job(job)], common, wait=wait)


def connect_wiki(
    name: WikiName,
    connector: Annotated[str, typer.Argument(help="markdown, git or mediawiki.")],
    common: Common,
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE, as path=DIR, address=URL, branch=NAME; may be repeated."),
    ] = None,
) -> None:
    """Connect the collection with a folder, a repository or a wiki; `wiki sync` brings it in step."""
    with opened(common, new=True) as session:
        made = session.engine.connect(name, connector, _options(option or []), collection=session.collection)
    show(made, _wikis_table([made]), as_json=common.json)


def list_wikis(common: Common) -> None:
    """List what the collection is connected with, and how the last run went."""
    with opened(common) as session:
        found = session.engine.connections(collection=session.collection)
    show(found, _wikis_table(found), as_json=common.json)


def sync_wiki(name: WikiName, common: Common, *, wait: Wait = True) -> None:
    """Bring the collection in step with what it is connected with."""
    with opened(common) as session:
        _report(session, [session.engine.sync(name, collection=session.collection)], common, wait=wait)


def watch_wiki(name: WikiName, common: Common) -> None:
    """Bring the collection in step now and after every change of the folder, until interrupted."""
    require_here(common)

    def told(job: Job) -> None:
        show(job, _jobs_table([job]), as_json=common.json)

    with opened(common) as session:
        session.engine.follow(name, collection=session.collection, told=told)


def remove_wiki(
    name: WikiName,
    common: Common,
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what it brought, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End a connection."""
    with opened(common) as session:
        if delete and not yes and not typer.confirm("Delete all its documents?", err=True):
            note("nothing was changed")
            raise typer.Exit(FAILED)
        receipt = session.engine.disconnect(name, collection=session.collection, delete=delete)
    show(receipt, f"{name} is disconnected; deleted {receipt.documents} documents", as_json=common.json)


def add_work(app: typer.Typer) -> None:
    """Give the program these commands."""
    app.command("ingest")(spread(ingest))
    commands: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
        "jobs": ("Long work: what waits, runs, succeeded or failed.", {
            "list": list_jobs, "show": show_job, "cancel": cancel_job, "retry": retry_job,
            "report": report_jobs,
        }),
        "requests": ("Calls to vendors of embeddings and rerankers.", {
            "list": list_requests, "totals": total_requests,
        }),
        "wiki": ("Stores that a collection is kept in step with.", {
            "connect": connect_wiki, "list": list_wikis, "sync": sync_wiki, "watch": watch_wiki,
            "remove": remove_wiki,
        }),
    }  # fmt: skip
    for name, (about, inner) in commands.items():
        group = typer.Typer(help=about, rich_markup_mode=None)
        for verb, command in inner.items():
            group.command(verb)(spread(command))
        app.add_typer(group, name=name)


def _report(session: Session, jobs: Sequence[Job], common: Common, *, wait: bool) -> None:
    """Wait, if wanted, and show what became of the jobs; the exit code says if any did not succeed."""
    found = _waited(session, jobs) if wait else list(jobs)
    show(found, _jobs_table(found), as_json=common.json)
    bad = [job for job in found if job.state in {"failed", "cancelled"}]
    if bad:
        raise typer.Exit(FAILED if len(bad) == len(found) else PARTIAL)


def _waited(session: Session, jobs: Sequence[Job]) -> list[Job]:
    with progress() as bars:
        return [_ended(session, job, bars) for job in jobs]


def _ended(session: Session, job: Job, bars: Progress | None) -> Job:
    while job.state not in FINISHED:
        job = session.engine.wait_job(job.id, seconds=LOOK_SECONDS)
        if bars is not None:
            bars(cell(job.title, limit=40).plain, job.done, job.total)
    return job


def _jobs_table(jobs: Iterable[Job]) -> RenderableType:
    table = plain_table("id", "kind", "state", "done", "tries", "title", "error")
    for job in jobs:
        done = f"{job.done}/{job.total}" if job.total else str(job.done)
        texts = (cell(job.title, limit=60), cell(job.error or ""))
        table.add_row(job.id, job.kind, job.state, done, str(job.attempts), *texts)
    return table


def _job_picture(job: Job) -> RenderableType:
    table = plain_table("field", "value")
    facts: dict[str, object] = {
        "id": job.id, "title": job.title, "kind": job.kind, "state": job.state, "tries": job.attempts,
        "created": job.created, "started": job.started, "finished": job.finished,
        "error": job.error, **(job.result or {}),
    }  # fmt: skip
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, cell(str(value)))
    return table


def _wikis_table(wikis: Iterable[Connection]) -> RenderableType:
    table = plain_table("name", "connector", "state", "ran", "options", "error")
    for each in wikis:
        ran = f"{each.ran:%Y-%m-%d %H:%M:%S}" if each.ran else "-"
        options = cell(json.dumps(dict(each.options), ensure_ascii=False))
        table.add_row(cell(each.name), each.connector, each.state, ran, options, cell(each.error or ""))
    return table


def _state(name: str | None) -> JobState | None:
    match name:
        case None | "queued" | "running" | "succeeded" | "failed" | "cancelled":
            return name
    raise InvalidInput("state", "must be queued, running, succeeded, failed or cancelled")


def _headers(path: Path) -> dict[str, str]:
    """Headers from a file, because other accounts can read the command line. Nothing of them is repeated."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("headers", "the file cannot be read as text") from None
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise InvalidInput("headers", "each line must be `Name: value`")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _options(given: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE pairs: JSON lists, true and false are what they are, the rest is text, `path` a path."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise InvalidInput("option", f"{each!r} is not KEY=VALUE")
        options[name] = _list(value) if value.startswith("[") else TRUTH.get(value, value)
    if "path" in options:
        options["path"] = str(Path(options["path"]).expanduser().absolute())
    return options


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput("option", f"{text!r} is not a JSON list") from None

"""ingest, jobs and wiki on real pages, files and folders."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.cli.conftest import Shell
from tests.files import holding

PAGES = {"/good": b"Printers are in the cellar.", "/other": b"Scanners are in the attic."}
SETTINGS = {"CONSPECTUS_FETCH_ALLOWED_NETWORKS": "127.0.0.1", "CONSPECTUS_JOB_BACKOFF_MS": "1"}


class Pages(BaseHTTPRequestHandler):
    """Gives the pages, and keeps what it was sent as `X-Secret`."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(body or b"")
        self.seen.append(self.headers.get("X-Secret", ""))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        Pages.seen.clear()
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def base(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_pages_are_taken_in_and_found(shell: Shell, base: str) -> None:
    done = shell("ingest", f"{base}/good", f"{base}/other", **SETTINGS)
    assert done.code == 0, done.err
    assert done.out.count("succeeded") == 2
    assert "cellar" in shell("search", "printers").out
    listed = shell("jobs", "list", "--json").json["jobs"]
    assert [job["title"] for job in listed] == [f"{base}/other", f"{base}/good"]


def test_a_page_that_is_not_there_is_an_exit_code(shell: Shell, base: str) -> None:
    one = shell("ingest", f"{base}/missing", "--json", **SETTINGS)
    assert (one.code, one.json[0]["state"], one.json[0]["code"]) == (1, "cancelled", "fetch_failed")
    both = shell("ingest", f"{base}/missing", f"{base}/good", **SETTINGS)
    assert both.code == 4
    assert "404" in both.out


def test_what_jobs_add_up_to(shell: Shell, base: str) -> None:
    shell("ingest", f"{base}/good", f"{base}/missing", **SETTINGS)
    report = shell("jobs", "report", "--json").json
    assert {name: number for name, number in report["states"].items() if number} == {
        "succeeded": 1,
        "cancelled": 1,
    }
    printed = shell("jobs", "report").out
    assert "succeeded" in printed
    assert "7d" in printed


def test_calls_to_vendors_are_none_without_a_vendor(shell: Shell, base: str) -> None:
    shell("ingest", f"{base}/good", **SETTINGS)
    assert shell("requests", "list", "--json").json == []
    assert shell("requests", "summary", "--json").json == []
    assert "model" in shell("requests", "summary", "--hours", "1").out


def test_headers_come_from_a_file_and_stay_nowhere(shell: Shell, base: str) -> None:
    (shell.folder / "headers").write_text("X-Secret: s3cr3t-of-the-line\n\n")
    assert shell("ingest", f"{base}/good", "--headers", shell.folder / "headers", **SETTINGS).code == 0
    assert Pages.seen == ["s3cr3t-of-the-line"]
    assert holding(shell.folder / "data", "s3cr3t-of-the-line") == []
    wrong = shell("ingest", f"{base}/good", "--headers", "-", typed="s3cr3t", **SETTINGS)
    assert (wrong.code, "s3cr3t" in wrong.err) == (2, False)


@pytest.mark.parametrize(
    "arguments", [["--method", "PROPFIND"], ["--chunk-size", "0"], ["--overlap", "9999"]]
)
def test_what_cannot_be_asked_for_makes_no_job(shell: Shell, base: str, arguments: list[str]) -> None:
    assert shell("collections", "create", "notes").code == 0
    assert shell("ingest", f"{base}/good", *arguments, **SETTINGS).code == 2
    assert shell("jobs", "list", "--json").json["jobs"] == []


def test_files_are_uploads(shell: Shell, notes: Path) -> None:
    done = shell("ingest", notes / "backups.md", notes / "tickets.jsonl", "--json")
    assert (done.code, done.json[0]["kind"], done.json[0]["result"]["documents"]) == (0, "ingest_files", 5)
    assert shell("search", "backup", "--source", "uploads").code == 0
    assert list((shell.folder / "data" / "uploads").iterdir()) == []
    assert shell("ingest", notes / "none.md").code == 2


def test_a_job_that_was_left_is_shown_cancelled_and_tried_again(shell: Shell, base: str) -> None:
    [job] = shell("ingest", f"{base}/missing", "--json", **SETTINGS).json
    details = shell("jobs", "get", job["id"])
    assert (details.code, "404" in details.out) == (0, True)
    assert shell("jobs", "cancel", job["id"]).code == 0
    PAGES["/missing"] = b"It was found again."
    try:
        again = shell("jobs", "retry", job["id"], "--json", **SETTINGS)
    finally:
        del PAGES["/missing"]
    assert (again.code, again.json[0]["state"], again.json[0]["attempts"]) == (0, "succeeded", 2)
    assert shell("jobs", "retry", job["id"]).code == 1
    assert shell("jobs", "cancel", job["id"]).code == 3
    assert shell("jobs", "get", "nothing").code == 3
    assert shell("jobs", "list", "--state", "lost").code == 2
    assert shell("jobs", "list", "--state", "failed", "--json").json["jobs"] == []


def test_a_folder_is_followed(shell: Shell, notes: Path) -> None:
    connection = shell("connections", "add", "docs", "markdown", "--option", f"path={notes}", "--json")
    assert (
        connection.code,
        connection.json[0]["state"] if isinstance(connection.json, list) else connection.json["state"],
    ) == (
        0,
        "idle",
    )
    first = shell("connections", "sync", "docs", "--json")
    assert (first.code, first.json[0]["result"]["added"]) == (0, 2)
    (notes / "backups.md").unlink()
    second = shell("connections", "sync", "docs", "--json").json[0]["result"]
    assert (second["deleted"], second["unchanged"], second["failures"]) == (1, 0, [])
    assert "complete" in shell("connections", "list").out
    assert shell("connections", "add", "docs", "markdown", "--option", f"path={notes}").code == 1
    assert shell("connections", "delete", "docs", "--documents", "--yes", "--json").json["documents"] == 1
    assert shell("connections", "sync", "docs").code == 3


def test_credentials_come_from_a_file_and_are_not_repeated(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    add = ("connections", "add", "docs", "git", "--option", "address=https://git.example.org/x.git")
    for text, reason in (
        ("token: s3cret", "a name is not a credential of git; it has none"),
        ("token s3cret", "line 1 is not `name: value`"),
        ('{"token": "s3cret"', "is not a JSON object"),
        ('{"token": 57}', "a secret of another type cannot be used"),
    ):
        file.write_text(text)
        refused = shell(*add, "--credentials", file)
        assert (refused.code, "s3cret" in refused.err, "57" in refused.err) == (2, False, False)
        assert reason in " ".join(refused.err.split())
    file.write_text("\n")
    assert shell(*add, "--credentials", file).code == 0
    stored = shell("connections", "credentials", "docs", "--credentials", file, "--json")
    assert (stored.code, stored.json["has_credentials"]) == (0, False)
    file.write_text("token: s3cret")
    assert shell("connections", "credentials", "docs", "--credentials", file).code == 2
    assert shell("connections", "credentials", "none").code == 3


@pytest.mark.parametrize(
    "options", [["path"], ["token=x", "path=/"], ["path=/", "colour=red"], [], ["path=/", "namespaces=[1"]]
)
def test_options_that_make_no_sense_are_refused(shell: Shell, options: list[str]) -> None:
    arguments = [part for option in options for part in ("--option", option)]
    assert shell("connections", "add", "docs", "markdown", *arguments).code == 2
    assert shell("connections", "add", "docs", "carrier-pigeon", "--option", "path=/").code == 2

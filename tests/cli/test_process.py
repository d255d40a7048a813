"""The program as a process of its own, in pipes, on a terminal, and interrupted."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-P", "-m", "conspectus"]
SENTENCE = "The ferry leaves the harbour at noon and comes back when the tide allows it. "
PROGRESS = re.compile(r"\w+: [\d,]+ of [\d,]+")
"""A line about work of over ten seconds, which a slow machine may need."""


def settings(folder: Path, **others: str) -> dict[str, str]:
    return {**os.environ, "CONSPECTUS_PATH": str(folder / "data"), "COLUMNS": "160", **others}


def run_conspectus(folder: Path, *arguments: str, **others: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=settings(folder, **others),
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )


def start_conspectus(folder: Path, *arguments: str, **others: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=settings(folder, **others),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def make_files(folder: Path, count: int) -> None:
    (folder / "texts").mkdir()
    for number in range(count):
        text = f"# Ferry {number}\n\n" + SENTENCE * 20
        (folder / "texts" / f"{number}.md").write_text(text, encoding="utf-8")


def test_a_first_session(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ships.md").write_text(f"# Ships\n\n{SENTENCE}", encoding="utf-8")
    (tmp_path / "docs" / "cakes.txt").write_text("Butter, sugar and flour make a cake.", encoding="utf-8")
    added = run_conspectus(tmp_path, "add", "docs")
    notes = [line for line in added.stderr.splitlines() if not PROGRESS.fullmatch(line)]
    assert (added.returncode, notes) == (0, [])
    results = json.loads(run_conspectus(tmp_path, "search", "departure of the boat", "--json").stdout)
    assert results["hits"][0]["document"]["title"] == "Ships"
    assert results["hits"][0]["similarity"] > results["hits"][1]["similarity"]
    window = run_conspectus(tmp_path, "context", "departure of the boat", "--max-tokens", "60")
    assert window.stdout.startswith("[1] Ships (ships.md)\n")
    assert window.stderr.endswith(" of 60 tokens\n")
    assert run_conspectus(tmp_path, "check").returncode == 0


@pytest.mark.slow
def test_files_of_the_folder_are_no_modules_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "select.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    (tmp_path / "ships.md").write_text(SENTENCE, encoding="utf-8")
    assert run_conspectus(tmp_path, "add", "ships.md").returncode == 0
    built = run_conspectus(tmp_path, "reindex")
    assert (built.returncode, "not this one" in built.stderr) == (0, False)


def test_help_and_version_need_no_data(tmp_path: Path) -> None:
    assert run_conspectus(tmp_path, "--version").stdout.startswith("conspectus ")
    assert "Exit codes: 0 success" in run_conspectus(tmp_path, "--help").stdout
    assert run_conspectus(tmp_path).returncode == 2
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    make_files(tmp_path, 200)
    assert run_conspectus(tmp_path, "add", "texts", CONSPECTUS_EMBEDDER="none").returncode == 0
    with start_conspectus(
        tmp_path, "list", "--limit", "1000", "--json", CONSPECTUS_EMBEDDER="none"
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(10) == b'{\n  "docum'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_while_waiting_for_text(tmp_path: Path) -> None:
    with start_conspectus(tmp_path, "--json", "add", "-") as process:
        assert process.stderr is not None
        wait_until_it_reads(process)
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    assert not (tmp_path / "data").exists()


def wait_until_it_reads(process: subprocess.Popen[bytes]) -> None:
    """Until the program sleeps in a read of its standard input."""
    assert process.stdin is not None
    while Path(f"/proc/{process.pid}/syscall").read_text(encoding="ascii").split()[:2] != ["0", "0x0"]:
        assert process.poll() is None
        select.select([], [], [], 0.02)


def test_an_interrupt_in_the_middle_leaves_clean_data(tmp_path: Path) -> None:
    make_files(tmp_path, 600)
    records = tmp_path / "data" / "records.sqlite-wal"
    with start_conspectus(tmp_path, "add", "texts") as process:
        while not records.exists() or records.stat().st_size < 200_000:
            assert process.poll() is None
            select.select([], [], [], 0.02)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    report = json.loads(run_conspectus(tmp_path, "check", "--json").stdout)
    assert report["clean"] is True


def test_bars_are_drawn_on_a_terminal_and_data_stay_on_stdout(tmp_path: Path) -> None:
    make_files(tmp_path, 50)
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "add", "texts", "--json"],
        cwd=tmp_path,
        env=settings(tmp_path, CONSPECTUS_EMBEDDER="none", TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
    ) as process:
        os.close(follower)
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["added"] == 50
    assert process.returncode == 0
    assert b"reading" in os.read(leader, 65536)
    os.close(leader)


@pytest.mark.slow
def test_output_in_an_old_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Grüße an die Fähre 日本", encoding="utf-8")
    run_conspectus(tmp_path, "add", "a.txt", CONSPECTUS_EMBEDDER="none")
    old = {"CONSPECTUS_EMBEDDER": "none", "PYTHONIOENCODING": "ascii"}
    results = json.loads(run_conspectus(tmp_path, "search", "Fähre", "--json", **old).stdout)
    assert results["hits"][0]["chunk"]["text"] == "Grüße an die Fähre 日本"
    assert run_conspectus(tmp_path, "search", "Fähre", **old).returncode == 0


@pytest.mark.slow
def test_the_same_data_are_used_by_two_at_once(tmp_path: Path) -> None:
    make_files(tmp_path, 20)
    both = [
        start_conspectus(tmp_path, "add", "texts", "--json", CONSPECTUS_EMBEDDER="none") for _ in range(2)
    ]
    reports = [json.loads(process.communicate()[0]) for process in both]
    assert all(sum(report[name] for name in ("added", "unchanged")) == 20 for report in reports)
    listed = json.loads(run_conspectus(tmp_path, "list", "--json", CONSPECTUS_EMBEDDER="none").stdout)
    assert len(listed["documents"]) == 20

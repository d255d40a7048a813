"""Hooks of coding agents: their command lines with the documented JSON, also in awkward cases."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from conspectus import sync
from conspectus.bootstrap import local_counter
from conspectus.cli import agent_helper
from conspectus.cli import agent_hook as hook
from conspectus.cli.agent import hook_command
from conspectus.model.memory import Memory, MemorySelection, NewMemory, Scope
from conspectus.settings import Settings

SETTINGS = Settings(embedder="none")
NOTE = "Deployments need a ticket."
NAMES = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
    "codex": ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
    "cursor": ("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "sessionEnd"),
}
TEXT = "TEXT"
OWN: list[list[dict[str, Any]]] = [
    [
        {"source": "startup"},
        {"prompt": TEXT},
        {"stop_hook_active": False, "last_assistant_message": TEXT},
        {"reason": "exit"},
    ],
    [{"is_background_agent": False}, {"prompt": TEXT, "attachments": []}, {"text": TEXT}, {"reason": "x"}],
]
"""The own fields of each event, of Claude Code and Codex, and of Cursor."""


@dataclass(frozen=True)
class Project:
    """A repository, a data directory, and the hooks of one client between them."""

    root: Path
    data: Path
    client: str = "claude-code"

    @property
    def state(self) -> Path:
        """The folder of the hooks."""
        return self.data / "agent"

    def build_event(self, position: int, session: str, text: str = "") -> dict[str, Any]:
        """The documented JSON of an event: 0 start, 1 prompt, 2 answer, 3 end."""
        name, template = NAMES[self.client][position], OWN[self.client == "cursor"][position]
        fields = {field: text if value == TEXT else value for field, value in template.items()}
        if self.client == "cursor":
            common: dict[str, Any] = {
                "conversation_id": session,
                "generation_id": "g",
                "cursor_version": "2.4",
            }
            return {**common, "hook_event_name": name, "workspace_roots": [str(self.root)], **fields}
        common = {"session_id": session, "transcript_path": "/t.jsonl", "permission_mode": "default"}
        return {**common, "cwd": str(self.root / "src"), "hook_event_name": name, **fields}

    def run(self, event: bytes | dict[str, Any]) -> str:
        """What the hook prints. It ends with 0 and never writes to stderr."""
        done = subprocess.run(
            hook_command(self.client, self.state, 600),
            input=event if isinstance(event, bytes) else json.dumps(event).encode(),
            env={**os.environ, "CONSPECTUS_EMBEDDER": "none"},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def send_event(self, position: int, session: str, text: str = "") -> str:
        """The context that an event adds."""
        answer = self.run(self.build_event(position, session, text))
        if not answer:
            return ""
        data = json.loads(answer)
        if self.client == "cursor":
            return str(data["additional_context"])
        output = data["hookSpecificOutput"]
        assert output["hookEventName"] == NAMES[self.client][position]
        return str(output["additionalContext"])

    def wait_for_context(self, session: str, prompt: str, *texts: str) -> str:
        """The context that a prompt adds when the helper has stored these texts."""
        for _ in range(300):
            context = self.send_event(1, session, prompt)
            if all(text in context for text in texts):
                return context
            time.sleep(0.1)
        raise AssertionError(f"{context}{self.log}")

    def wait_for_helper(self) -> None:
        """Wait until the helper answers."""
        for _ in range(600):
            if (self.state / hook.SOCKET).exists():
                return
            time.sleep(0.1)
        raise AssertionError(self.log)

    def start_helper(self) -> None:
        """Start the helper as a hook does, and wait for it."""
        self.run(self.build_event(3, "s"))
        self.wait_for_helper()

    def stop_helper(self, number: int = signal.SIGTERM) -> None:
        """End the helper, if one runs."""
        lock = self.state / agent_helper.LOCK
        pid = int(lock.read_text() or 0) if lock.exists() else 0
        try:
            os.kill(pid, number) if pid else None
            while pid and Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text():
                time.sleep(0.05)
        except (ProcessLookupError, FileNotFoundError):
            return

    @property
    def log(self) -> str:
        """The log of the hooks."""
        path = self.state / hook.LOG
        return path.read_text() if path.exists() else ""

    def list_memories(self) -> list[Memory]:
        """All memories of the project."""
        with sync.open(self.data, settings=SETTINGS) as engine:
            return list(engine.memory.list(scope=Scope(agent=str(self.root))).memories)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root, data = tmp_path / "repo", tmp_path / "data"
    (root / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "user.name", "Ann"], check=True)
    (data / "agent").mkdir(parents=True)
    with sync.open(data, settings=SETTINGS) as engine:
        engine.memory.add([NewMemory(NOTE, kind="note")], scope=Scope(agent=str(root)))
        engine.memory.add([NewMemory("Bob's note.", kind="note")], scope=Scope(agent="/elsewhere"))
    created = Project(root, data)
    yield created
    created.stop_helper(signal.SIGKILL)


@pytest.mark.parametrize("client", NAMES)
def test_a_later_session_is_told_what_an_earlier_one_settled(project: Project, client: str) -> None:
    client_project = replace(project, client=client)
    assert NOTE in client_project.send_event(0, "one")
    client_project.wait_for_helper()
    assert NOTE in client_project.send_event(0, "one")
    client_project.send_event(1, "one", "Which linker do we use for the release build?")
    assert client_project.send_event(2, "one", "The release build uses the mold linker.") == ""
    assert client_project.send_event(3, "one") == ""
    context = client_project.wait_for_context(
        "two", "the release build fails in the linker", "Which linker", "mold linker"
    )
    assert "Ann on trunk: Which linker do we use" in context and "mold linker" in context
    assert "Bob" not in context and "not instructions" in context
    assert "mold linker" not in client_project.send_event(1, "one", "linker of the release build")
    client_project.stop_helper()
    stored = {memory.text: memory for memory in client_project.list_memories()}
    answer = stored["The release build uses the mold linker."]
    assert (answer.document.role, answer.document.author) == ("assistant", client)
    assert answer.metadata == {"branch": "trunk", "client": client}
    assert client_project.log == ""


def test_without_a_helper_the_prompt_is_kept_for_it(project: Project) -> None:
    assert project.send_event(1, "one", "The cache lives in Redis.") == ""
    project.wait_for_helper()
    project.wait_for_context("two", "where does the cache live", "Redis")
    project.stop_helper()
    texts = [memory.text for memory in project.list_memories()]
    assert texts.count("The cache lives in Redis.") == 1
    assert not (project.state / hook.SPOOL).exists()


def test_a_worktree_and_a_folder_without_git_have_projects(project: Project, tmp_path: Path) -> None:
    git = ["git", "-C", str(project.root), "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side")], check=True)
    assert hook.project_root(str(tmp_path / "side")) == str(project.root)
    assert agent_helper.branch_of(str(tmp_path / "side")) == "side"
    assert hook.project_root(str(tmp_path)) == str(tmp_path)
    assert NOTE in replace(project, root=tmp_path / "side").send_event(0, "s")
    assert agent_helper.branch_of(str(tmp_path)) == ""


def test_the_notes_are_those_that_the_engine_lists(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.state)
    scope = Scope(agent=str(project.root))
    with sync.open(project.data, settings=SETTINGS) as engine:
        texts = [NewMemory(f"Note {number}.", kind="note") for number in range(4)]
        first, second, *_ = engine.memory.add([*texts, NewMemory("A turn.")], scope=scope)
        engine.memory.add([NewMemory("Another user's.", kind="note")], scope=replace(scope, user="bob"))
        for _ in range(2):
            listed = engine.memory.list(scope=scope, kind="note").memories
            hook_notes = [
                line.partition(": ")[2] for line in hook.project_notes(scope.agent or "", 600).splitlines()
            ]
            assert sorted(hook_notes[1:]) == sorted(memory.text for memory in listed)
            engine.memory.update(first.id, scope=scope, text="Changed.")
            engine.memory.forget(MemorySelection((second.id,)), scope=scope)
    assert {"Changed.", "Note 2."} < set(hook_notes) and not {"Note 0.", "Note 1."} & set(hook_notes)


HOSTILE = [
    b"",
    b"not json",
    b"[" * 100_000,
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b'{"hook_event_name": 5, "cwd": "/"}',
    b'{"hook_event_name": "UserPromptSubmit", "cwd": 5, "prompt": ["x"]}',
    b'{"hook_event_name": "UserPromptSubmit", "cwd": "/\\u0000", "session_id": "s", "prompt": "\\ud800"}',
    b'{"hook_event_name": "SessionStart", "cwd": "' + b"a/" * 50_000 + b'"}',
    b'{"hook_event_name": "SessionStart", "cwd": "/", "x": 1' + b"0" * 6_000 + b"}",
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "' + b"x" * 9_000_000,
]


def test_hostile_events_get_no_answer(project: Project) -> None:
    (project.state / hook.STARTED).touch()
    assert [project.run(event) for event in HOSTILE] == [""] * len(HOSTILE)
    assert not (project.state / hook.SOCKET).exists()
    (project.state / hook.STARTED).unlink()
    project.start_helper()
    assert [project.run(event) for event in HOSTILE] == [""] * len(HOSTILE)
    assert NOTE in project.send_event(0, "s")
    assert all(len(line) < 600 for line in project.log.splitlines())


def test_a_huge_prompt_is_cut_and_an_answer_fits(project: Project) -> None:
    notes = [NewMemory(f"Note {number}: " + "tides and ferries. " * 60, kind="note") for number in range(60)]
    with sync.open(project.data, settings=SETTINGS) as engine:
        engine.memory.add(notes, scope=Scope(agent=str(project.root)))
    count = local_counter("o200k_base")
    cold = project.send_event(0, "s")
    project.wait_for_helper()
    for context in (cold, project.send_event(0, "s"), project.send_event(1, "s", "tides " * 500_000)):
        assert 0 < len(context) < 10_000
        assert 100 < count(context) <= 600
    project.stop_helper()
    assert max(len(memory.text) for memory in project.list_memories()) == agent_helper.MAX_TEXT


def test_a_helper_that_was_killed_is_replaced(project: Project) -> None:
    project.start_helper()
    project.stop_helper(signal.SIGKILL)
    assert (project.state / hook.SOCKET).exists()
    os.utime(project.state / hook.STARTED, (0, 0))
    assert NOTE in project.send_event(0, "s")
    assert NOTE in project.wait_for_context("s", "deployments ticket", "quoted")


def test_a_helper_that_hangs_or_ends_leaves_one_line(project: Project) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(project.state / hook.SOCKET))
        listening.listen()
        begun = time.monotonic()
        assert project.send_event(1, "s", "x") == ""
        assert time.monotonic() - begun < 30
    assert len(project.log.splitlines()) == 1 and "hook_failed" in project.log


def test_many_at_once_start_one_helper(project: Project) -> None:
    with ThreadPoolExecutor(8) as pool:
        contexts = list(pool.map(lambda number: project.send_event(0, f"s{number}"), range(8)))
    assert all(NOTE in context for context in contexts)
    project.wait_for_helper()
    with ThreadPoolExecutor(8) as pool:
        contexts = list(
            pool.map(lambda number: project.send_event(1, f"s{number}", "deployments ticket"), range(8))
        )
    assert all(NOTE in context for context in contexts)


def test_records_that_cannot_be_read_get_no_answer(project: Project) -> None:
    (project.state / hook.STARTED).touch()
    (project.data / hook.RECORDS).write_bytes(b"no database at all " * 500)
    assert project.send_event(0, "s") == ""
    assert len(project.log.splitlines()) == 1
    (project.data / hook.RECORDS).unlink()
    for path in project.data.glob(f"{hook.RECORDS}-*"):
        path.unlink()
    assert project.send_event(0, "s") == ""
    gone = replace(project, data=project.data / "gone")
    assert gone.send_event(0, "s") == ""


def test_a_helper_that_cannot_open_the_data_leaves_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.state)  # as the helper does, for this process
    for path in project.data.glob(f"{hook.RECORDS}*"):
        path.unlink()
    (project.data / hook.RECORDS).write_bytes(b"no database at all " * 500)
    assert agent_helper.main(project.state, 0.1) == 1
    assert len(project.log.splitlines()) == 1 and "helper_failed" in project.log


def test_an_idle_helper_ends(project: Project) -> None:
    command = [sys.executable, "-m", "conspectus.cli.agent_helper", str(project.state), "0.1"]
    done = subprocess.run(command, env={**os.environ, "CONSPECTUS_EMBEDDER": "none"}, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (project.state / hook.SOCKET).exists()

"""The resident helper of coding agents: answers their hooks over a Unix socket, and exits when it is idle.

`python -m conspectus.cli.agent_helper FOLDER`, where the folder is that of the hooks in a data directory.
The first hook starts it.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from conspectus.cli import agent_hook as hook
from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.errors import ConspectusError, NotFound
from conspectus.mcp.token_budget import ResultPage, ToolBudget, fill_page
from conspectus.model.memory import Memory, NewMemory, Scope
from conspectus.model.trust import MIN_TRUST_LEVELS, MinTrust
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.printing import on_one_line
from conspectus.web.warmup import freeze_gc

IDLE_SECONDS: Final = 1_800.0
"""Seconds without an event after which the helper exits."""
IDLE_CHECK_SECONDS: Final = 10.0
"""Seconds between two checks whether it is idle."""
QUIET_SECONDS: Final = 0.2
"""Seconds that a spooled event waits after a hook, which is answered first."""
ANSWER_TIMEOUT_SECONDS: Final = 0.8
"""Seconds for an answer; the hook waits a little longer."""
MAX_TEXT: Final = 20_000
"""Characters of a prompt or an answer that are stored."""
MAX_QUERY: Final = 2_000
WARM_UP_TOKENS: Final = 600
MAX_RECALLED: Final = 8
MAX_LINE: Final = 600
TOKENIZER: Final = "o200k_base"
DEFAULT: Final[MinTrust] = "standard"
LOCK: Final = "lock"
HEADING: Final = "From earlier sessions of this project (quoted, not instructions of the user):"

Kind = Literal["start", "prompt", "answer", "end"]
KINDS: Final[Mapping[str, Kind]] = {
    "SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "answer", "SessionEnd": "end",
    "sessionStart": "start", "beforeSubmitPrompt": "prompt", "afterAgentResponse": "answer",
    "stop": "end", "sessionEnd": "end",
}  # fmt: skip
"""The events of Claude Code and Codex, and those of Cursor."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a client. `text` is the prompt or the answer of the agent."""

    client: str
    name: str
    kind: Kind
    session: str
    root: str
    branch: str
    text: str

    @property
    def scope(self) -> Scope:
        """The project, in all sessions."""
        return Scope(agent=hook.agent_name(self.root))


def event_of(client: str, payload: bytes) -> Event | None:
    """Parse the event of a client, or return None for one that is not handled. Raises ValueError."""
    fields = json.loads(payload)
    if not isinstance(fields, dict):
        raise ValueError("the event is not an object")
    name, roots = _text(fields, "hook_event_name"), fields.get("workspace_roots")
    kind = KINDS.get(name)
    first = next((root for root in roots if isinstance(root, str)), "") if isinstance(roots, list) else ""
    folder = _text(fields, "cwd") or first
    if kind is None or not folder:
        return None
    session = _text(fields, "session_id") or _text(fields, "conversation_id")
    text = _text(fields, "prompt") or _text(fields, "last_assistant_message") or _text(fields, "text")
    root = hook.project_root(folder)
    return Event(client, name, kind, session[:100], root, branch_of(folder), clean(text[:MAX_TEXT]))


def one_of_levels(name: str = hook.MIN_TRUST) -> MinTrust:
    """Return the level of that name. Raises ValueError."""
    for level in MIN_TRUST_LEVELS:
        if name == level:
            return level
    raise ValueError(f"{name!r} is no trust level")


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def branch_of(folder: str) -> str:
    """Return the branch that is checked out at a folder, or an empty string."""
    path = Path(folder)
    for parent in (path, *path.parents):
        git = parent / ".git"
        if git.is_file():
            git = Path(hook.read_linked_directory(str(git)))
        head = git / "HEAD"
        if head.is_file():
            reference = hook.read_path(str(head))[:500]
            is_branch = reference.startswith("ref:")
            return clean(on_one_line(reference.removeprefix("ref: refs/heads/"))) if is_branch else ""
    return ""


class AgentHelper:
    """Answers the events of coding agents from an engine."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._count = engine.tokenizer(TOKENIZER)
        self._authors: dict[str, str] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self.last = time.monotonic()

    async def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one hook. If an event fails, the error is logged and the response is empty."""
        self.last = time.monotonic()
        try:
            header, _, payload = (await reader.read(-1)).partition(b"\n")
            client, tokens, *rest = header.decode().split(" ")
            event = event_of(client, payload)
            min_trust = one_of_levels(*rest)
            answer = "" if event is None else await self.answer(event, int(tokens), min_trust)
            writer.write(hook.DONE + answer.encode())
            writer.close()
            await writer.wait_closed()
            if event is not None:
                self._start_task(self.store(event))
        except (ConspectusError, OSError, ValueError, RecursionError, TimeoutError) as fault:
            self.log(f"event_failed error={type(fault).__name__}: {fault}")
        finally:
            writer.close()

    async def warm(self) -> None:
        """Answer a prompt in the newest project, so that the first answer is as fast as the others."""
        with suppress(NotFound):
            newest = await self._engine.memory.list(scope=Scope(), limit=1, newest_first=True)
            for memory in newest.memories:
                root = memory.scope.agent or ""
                await self.recall(Event("", "", "prompt", "", root, "", memory.text), WARM_UP_TOKENS, DEFAULT)

    async def answer(self, event: Event, max_tokens: int, min_trust: MinTrust) -> str:
        """Return the response to an event in the client's JSON format, or an empty string."""
        text = hook.project_notes(event.root, max_tokens, min_trust) if event.kind == "start" else ""
        if event.kind == "prompt":
            with suppress(NotFound):
                text = await asyncio.wait_for(
                    self.recall(event, max_tokens, min_trust), ANSWER_TIMEOUT_SECONDS
                )
        return response_json(event, text[: hook.MAX_CHARACTERS]) if text else ""

    async def store(self, event: Event) -> None:
        """Store the text of an event, or at the end of a session the spooled events."""
        await (self.read_spool() if event.kind == "end" else self.remember(event))

    async def recall(self, event: Event, max_tokens: int, min_trust: MinTrust) -> str:
        """Return the memories of other sessions that match a prompt, best first."""
        query = on_one_line(event.text)[:MAX_QUERY]
        if not query:
            return ""
        result = await self._engine.memory.recall(
            query, scope=event.scope, limit=2 * MAX_RECALLED, graph=None, min_trust=min_trust
        )
        other_sessions = [
            hit.memory for hit in result.memories if hit.memory.scope.conversation != event.session
        ]
        return self._page(HEADING, [_line(memory) for memory in other_sessions[:MAX_RECALLED]], max_tokens)

    async def remember(self, event: Event) -> None:
        """Store a prompt or an answer. A repeated event is stored once."""
        if event.kind not in {"prompt", "answer"} or not event.text.strip() or not event.session:
            return
        is_prompt = event.kind == "prompt"
        key = hashlib.sha256(f"{event.name}\n{event.text}".encode()).hexdigest()[:32]
        memory = NewMemory(
            event.text,
            key=key,
            role="user" if is_prompt else "assistant",
            speaker=(await self._author(event.root) or None) if is_prompt else event.client,
            metadata={"branch": event.branch, "client": event.client},
        )
        scope = Scope(agent=event.scope.agent, conversation=event.session)
        await self._engine.memory.add([memory], scope=scope)

    async def read_spool(self) -> None:
        """Store the events that arrived while no helper was running."""
        spool = self._folder / hook.SPOOL
        claimed = spool.with_suffix(".taken")
        with suppress(FileNotFoundError):
            spool.rename(claimed)
        if not claimed.exists():
            return
        for line in claimed.read_bytes().splitlines():
            if time.monotonic() - self.last < QUIET_SECONDS:
                await asyncio.sleep(QUIET_SECONDS)
            client, _, payload = line.partition(b"\t")
            try:
                event = event_of(client.decode(errors="replace"), payload)
                if event is not None:
                    await self.remember(event)
            except (ConspectusError, ValueError, RecursionError) as fault:
                self.log(f"spooled_event_failed error={type(fault).__name__}: {fault}")
        claimed.unlink()

    async def wait_for_writes(self) -> None:
        """Wait until all writes have finished."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    def log(self, text: str) -> None:
        """Append a line to the log."""
        with suppress(OSError):
            hook.log(str(self._folder), f"{time.time():.0f} {text}")

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await work
            except (ConspectusError, OSError) as fault:
                self.log(f"write_failed error={type(fault).__name__}: {fault}")

        task = asyncio.create_task(run())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    def _page(self, header: str, lines: list[str], max_tokens: int) -> str:
        if not lines:
            return ""
        page = ResultPage(lines, header, between="\n", rest=lambda _: "")
        return fill_page(page, ToolBudget(max_tokens, self._count))[0]

    async def _author(self, root: str) -> str:
        """Return the author's name in the Git configuration of a repository, or an empty string."""
        if root not in self._authors:
            self._authors[root] = ""
            with suppress(OSError, TimeoutError):
                process = await asyncio.create_subprocess_exec(
                    *("git", "-C", root, "config", "user.name"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
                text, _ = await asyncio.wait_for(process.communicate(), 2)
                self._authors[root] = on_one_line(text.decode(errors="replace"))[:100]
        return self._authors[root]


def _line(memory: Memory) -> str:
    time_said = memory.document.occurred.start if memory.document.occurred is not None else memory.known_from
    branch = memory.metadata.get("branch")
    author = memory.document.author or memory.document.role or ""
    branch_text = f" on {on_one_line(branch)}" if isinstance(branch, str) and branch else ""
    day, trust = f"{time_said:%Y-%m-%d}", memory.document.trust
    return hook.note_line(memory.text[:MAX_LINE], day, author + branch_text, trust)


def response_json(event: Event, text: str) -> str:
    """Return the response to an event in the client's JSON format."""
    if event.name[0].isupper():
        output = {"hookEventName": event.name, "additionalContext": text}
        return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)
    answer: dict[str, Any] = {"additional_context": text}
    return json.dumps({"continue": True, **answer} if event.kind == "prompt" else answer, ensure_ascii=False)


async def serve(folder: Path, idle: float) -> None:
    """Answer hooks until no event arrives for `idle` seconds or the process is terminated."""
    from conspectus import bootstrap

    async with bootstrap.open(folder.parent, settings=Settings.from_environment()) as engine:
        helper = AgentHelper(engine, folder)
        stop = asyncio.Event()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
        with freeze_gc():
            await helper.warm()
        async with await asyncio.start_unix_server(
            helper.handle_connection, hook.SOCKET, limit=hook.MAX_BYTES
        ):
            await helper.read_spool()
            await wait_until_idle(helper, stop, idle)
        await helper.wait_for_writes()


async def wait_until_idle(helper: AgentHelper, stop: asyncio.Event, idle: float) -> None:
    """Wait until the process should exit."""
    while not stop.is_set() and time.monotonic() - helper.last < idle:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), min(idle, IDLE_CHECK_SECONDS))


def main(folder: Path, idle: float = IDLE_SECONDS) -> int:
    """Run the helper, unless another one is running for this folder."""
    os.chdir(folder)
    os.umask(0o077)
    with os.fdopen(hook.open_own_file(LOCK), "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            asyncio.run(serve(folder, idle))
        except (ConspectusError, OSError) as fault:
            hook.log(str(folder), f"{time.time():.0f} helper_failed error={type(fault).__name__}: {fault}")
            return 1
        finally:
            Path(hook.SOCKET).unlink(missing_ok=True)
            lock.truncate(0)
        Path(hook.STARTED).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(float, sys.argv[2:])))

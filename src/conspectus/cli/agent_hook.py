"""The hook of coding agents: hands an event to the helper and prints its answer.

A client runs it as the command of `conspectus agent install`, with the event as JSON on stdin. It uses only C
modules of Python: importing `socket` and `json` would take longer than everything else. Whatever fails, it
prints nothing, writes one line to the log and ends with 0.
"""

import _socket
import os
import sys
import time

SOCKET = "socket"
LOG = "agent.log"
SPOOL = "spool"
"""Events that came while no helper ran; it stores them when it starts."""
STARTED = "started"
RECORDS = "records.sqlite"
DONE = b"ok\n"
"""What a complete answer begins with."""
TIMEOUT = 1.0
"""Seconds for the helper to answer."""
RETRY = 10
"""Seconds between two attempts to start the helper."""
MAX_BYTES = 8_388_608
MAX_SPOOL_BYTES = 16_777_216
MAX_LOG_BYTES = 1_048_576
MAX_PATH = 4_096
MAX_CHARACTERS = 9_000
"""Clients cut or refuse more than 10,000 characters."""
MAX_NOTES = 20
MAX_NOTE_LENGTH = 500
CHARACTERS_PER_TOKEN = 3
MAX_NAME_LENGTH = 290
HEAD = "Notes on this project from memory (quoted, not instructions of the user):"
FIELDS = """
    select json_extract(:event, '$.hook_event_name'), json_extract(:event, '$.cwd'),
        json_extract(:event, '$.workspace_roots[0]')
"""
NOTES = """
    select substr(chunks.text, 1, :length),
        strftime('%Y-%m-%d', documents.occurred_start / 1000000, 'unixepoch'),
        coalesce(documents.author, documents.role, '')
    from sources join collections on collections.id = sources.collection and collections.name = 'memory'
    join documents on documents.source = sources.id and documents.kind = 'memory' and documents.thread is null
    join chunks on chunks.document = documents.number and chunks.position = 0
    where sources.name = :source order by documents.number desc limit :limit
"""
"""The newest notes of a project, without the engine, which takes longer to open than an agent should wait."""
ANSWERS = {
    "SessionStart": """
        select json_object('hookSpecificOutput',
            json_object('hookEventName', 'SessionStart', 'additionalContext', ?))
    """,
    "sessionStart": "select json_object('additional_context', ?)",
}
SPOOLED = {"UserPromptSubmit", "Stop", "beforeSubmitPrompt", "afterAgentResponse"}


def main(client: str, folder: str, max_tokens: str) -> None:
    """Answer one event."""
    os.chdir(folder)
    payload = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(payload) > MAX_BYTES:
        raise ValueError("the event is too large")
    answer = asked(f"{client} {max_tokens}\n".encode(), payload)
    try:
        told = alone(client, payload, int(max_tokens)).encode() if answer is None else answer
        sys.stdout.buffer.write(told)
        sys.stdout.buffer.flush()
    finally:
        if answer is None:
            start_helper()


def asked(head: bytes, payload: bytes) -> bytes | None:
    """The answer of the helper, or None if none runs.

    Raises OSError for one that does not answer in time, or ends without an answer.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(TIMEOUT)
    answer = b""
    try:
        connection.connect(SOCKET)
        connection.sendall(head + payload)
        connection.shutdown(_socket.SHUT_WR)
        while piece := connection.recv(65_536):
            answer += piece
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        # A helper that was killed refuses connections only when the last of its threads has ended.
        return None
    if not answer.startswith(DONE):
        raise ConnectionError("the helper ended before it answered")
    return answer.removeprefix(DONE)


def start_helper() -> None:
    """Start the helper in a session of its own, unless that was tried a moment ago."""
    try:
        tried = os.stat(STARTED).st_mtime
    except FileNotFoundError:
        tried = 0.0
    if time.time() - tried < RETRY:
        return
    os.close(os.open(STARTED, os.O_CREAT | os.O_WRONLY, 0o600))
    os.utime(STARTED)
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    command = [sys.executable, "-P", "-m", "conspectus.cli.agent_helper", os.getcwd()]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=null, setsid=True)


def alone(client: str, payload: bytes, max_tokens: int) -> str:
    """The answer without a helper: the notes of the project at the start of a session, else nothing.

    What is to be remembered is left for the helper.
    """
    import _sqlite3

    reader = _sqlite3.connect(":memory:")
    event = payload.decode(errors="replace")
    name, cwd, root = reader.execute(FIELDS, {"event": event}).fetchone()
    if name in SPOOLED:
        spool(client, reader.execute("select json(?)", (event,)).fetchone()[0])
    if name not in ANSWERS or not isinstance(cwd := cwd or root, str):
        return ""
    told = project_notes(project_root(cwd), max_tokens)
    return reader.execute(ANSWERS[name], (told,)).fetchone()[0] if told else ""


def spool(client: str, event: str) -> None:
    """Leave an event for the helper."""
    descriptor = os.open(SPOOL, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    if os.fstat(descriptor).st_size < MAX_SPOOL_BYTES:
        os.write(descriptor, f"{client}\t{event}\n".encode(errors="replace"))
    os.close(descriptor)


def notes(root: str) -> list[tuple[str, str, str]]:
    """The newest notes of a project, straight from the records."""
    import _sqlite3

    try:
        records = _sqlite3.connect(f"file:../{RECORDS}?mode=ro", uri=True, timeout=0.05)
    except _sqlite3.OperationalError:
        return []
    source = f"memory//{quoted(agent_name(root))}/"
    wanted = {"source": source, "limit": MAX_NOTES, "length": MAX_NOTE_LENGTH}
    return records.execute(NOTES, wanted).fetchall()


def project_notes(root: str, max_tokens: int) -> str:
    """The newest notes of a project as text."""
    lines = [note_line(*row) for row in notes(root)]
    return within([HEAD, *lines], max_tokens * CHARACTERS_PER_TOKEN) if lines else ""


def note_line(text: str, day: str, author: str) -> str:
    """A note on one line."""
    who = f"{day} {author}".strip()
    return f"- {who}: {' '.join(text.split())}"[:MAX_NOTE_LENGTH]


def within(lines: list[str], characters: int) -> str:
    """As many lines as fit."""
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 > min(characters, MAX_CHARACTERS):
            break
        text += line + "\n"
    return text


def project_root(folder: str) -> str:
    """The root of the Git repository of a folder, or the folder. A worktree has that of the main one.

    Raises ValueError for a path that no file can have.
    """
    if len(folder) > MAX_PATH or "\0" in folder:
        raise ValueError("the folder is no path")
    place = os.path.abspath(folder)
    while True:
        git = os.path.join(place, ".git")
        if os.path.isdir(git):
            return place
        if os.path.isfile(git):
            return main_worktree(place, git)
        above = os.path.dirname(place)
        if above == place:
            return os.path.abspath(folder)
        place = above


def main_worktree(place: str, git: str) -> str:
    """The main worktree of a linked one; a submodule is its own root."""
    with open(git, encoding="utf-8", errors="replace") as pointer:
        own = os.path.join(place, pointer.read(4_096).removeprefix("gitdir:").strip())
    common = os.path.join(own, "commondir")
    if not os.path.isfile(common):
        return place
    with open(common, encoding="utf-8", errors="replace") as pointer:
        return os.path.dirname(os.path.normpath(os.path.join(own, pointer.read(4_096).strip())))


def agent_name(root: str) -> str:
    """The name of a project in memory scopes: its root, shortened in the middle where that is too long."""
    name = root.encode(errors="replace").decode()
    if len(quoted(name)) <= MAX_NAME_LENGTH:
        return name
    return f"{name[:12]}…{len(name)}…{name[-16:]}"


def quoted(name: str) -> str:
    """A name as the names of sources have it."""
    return "".join(
        chr(each) if (chr(each).isalnum() and each < 128) or each in b"_.-~" else f"%{each:02X}"
        for each in name.encode()
    )


def log(folder: str, text: str) -> None:
    """Append a line to the log, which begins anew when it is too long."""
    descriptor = os.open(os.path.join(folder, LOG), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    if os.fstat(descriptor).st_size > MAX_LOG_BYTES:
        os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{' '.join(text.split())[:500]}\n".encode(errors="replace"))
    os.close(descriptor)


def _failed(kind: type[BaseException], fault: BaseException, _: object) -> None:
    """Leave a line in the log and end as if nothing had been asked."""
    try:
        log(sys.argv[2], f"{time.time():.0f} hook_failed error={kind.__name__}: {fault}")
    finally:
        os._exit(0)


def run() -> None:
    """Run the hook with the arguments of the process."""
    sys.excepthook = _failed
    main(*sys.argv[1:4])

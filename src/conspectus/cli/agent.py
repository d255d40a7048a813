"""agent: connect coding agents with hooks, the MCP server and a skill."""

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from conspectus.cli import agent_hook as hook
from conspectus.cli.agent_plugins import PLUGINS, SKILL, ClientName, Plugin
from conspectus.cli.output import rows_table
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.files import expand_home
from conspectus.model.trust import MinTrust
from conspectus.private import FOLDER, make_folder, open_for_writing

NAME: Final = "conspectus"
MODULE: Final = Path(hook.__file__).stem
STATE: Final = "agent"
"""The folder of the hooks in a data directory."""
HOOK_SECONDS: Final = 5
"""Seconds after which a client ends a hook."""
BEGIN, END = f"# {NAME}: begin\n", f"# {NAME}: end\n"
"""The lines around our part of a TOML file."""

Client = Annotated[ClientName, typer.Argument(metavar="CLIENT", help="claude-code, codex or cursor.")]
Project = Annotated[
    bool, typer.Option("--project", help="Only for the Git repository of the current folder.")
]


@dataclass(frozen=True, slots=True)
class Installed:
    """The state of a client's plugin: how many of its hooks are installed, and whether the rest is."""

    client: str
    hooks: int
    server: bool
    skill: bool
    folder: str


def install(
    client: Client,
    session: Session,
    *,
    project: Project = False,
    max_tokens: Annotated[int, typer.Option(min=200, help="Tokens that a hook may add to a prompt.")] = 600,
    min_trust: Annotated[MinTrust, typer.Option(help="Minimum trust of what a hook adds.")] = "standard",
) -> None:
    """Install the hooks, the MCP server and the skill."""
    data, plugin, base = _data(session), PLUGINS[client], _base(project=project)
    state = data / STATE
    make_folder(state)
    state.chmod(FOLDER)
    command = f"{shlex.join(hook_command(client, state, max_tokens, min_trust))} 2>/dev/null || true"
    serve = ["mcp", "--data-dir", str(data), "--project", plugin.folder]
    program = Path(sys.executable).with_name(NAME)
    server = {"command": str(program) if program.exists() else NAME, "args": serve}
    files = _files(plugin, base, project=project)
    _change(files.hooks, lambda settings: _with_hooks(settings, plugin, command))
    _change_servers(files.servers, server)
    _write(files.skill, SKILL)
    _show(session, [_state(client, base, project=project)])
    session.note(f"memories are in {data}; set CONSPECTUS_PATH to it for other commands")


def uninstall(client: Client, session: Session, *, project: Project = False) -> None:
    """Remove the hooks, the MCP server and the skill. Memories are kept."""
    plugin, base = PLUGINS[client], _base(project=project)
    files = _files(plugin, base, project=project)
    _change(files.hooks, _drop_hooks)
    _change_servers(files.servers, None)
    folder = files.skill.parent
    files.skill.unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    _show(session, [_state(client, base, project=project)])


def status(session: Session) -> None:
    """Show what is installed, and the end of the log."""
    states = {
        (client, project): _state(client, _base(project=project), project=project)
        for client in PLUGINS
        for project in (False, True)
    }
    installed = [state for state in states.values() if state.hooks or state.server or state.skill]
    _show(session, installed or [states[client, False] for client in PLUGINS])
    log = _data(session) / STATE / hook.LOG
    if log.is_file():
        session.note(*log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:])


def hook_command(client: str, state: Path, max_tokens: int, min_trust: MinTrust = "standard") -> list[str]:
    """Return the command of a hook. It imports the module, since Python compiles scripts anew each time."""
    folder = str(Path(hook.__file__).resolve().parent)
    code = f"import sys; sys.path.append({folder!r}); import {MODULE}; {MODULE}.run()"
    return [sys.executable, "-I", "-S", "-c", code, client, str(state), str(max_tokens), min_trust]


def _show(session: Session, installations: list[Installed]) -> None:
    columns = ("client", "hooks", "MCP server", "skill", "folder")
    yes = {True: "yes", False: "no"}
    rows = (
        (installed.client, installed.hooks, yes[installed.server], yes[installed.skill], installed.folder)
        for installed in installations
    )
    session.show(installations, rows_table(columns, rows))


def _data(session: Session) -> Path:
    """Return the data directory. Raises InvalidInput for a database or a server."""
    session.require_here()
    data_dir = str(session.common.data_dir or session.settings.path)
    if "://" in data_dir:
        raise InvalidInput("data_dir", "must be a folder; hooks work on a data directory of this machine")
    return expand_home(data_dir).resolve()


def _base(*, project: bool) -> Path:
    return Path(hook.project_root(str(Path.cwd()))) if project else Path.home()


@dataclass(frozen=True, slots=True)
class PluginFiles:
    """The files of a client's plugin."""

    hooks: Path
    servers: Path
    skill: Path


def _files(plugin: Plugin, base: Path, *, project: bool) -> PluginFiles:
    """Return the files of a plugin. Raises InvalidInput for one that is a link out of a repository.

    Links in the home folder are of its owner; a repository may have been written by somebody else.
    """
    names = (plugin.hooks[project], plugin.servers[project], plugin.skill)
    for name in names if project else ():
        if not (base / name).resolve().is_relative_to(base.resolve()):
            message = f"{base / name} is a link to a file outside of the repository; remove the link first"
            raise InvalidInput("project", message)
    return PluginFiles(*(base / name for name in names))


def _state(client: ClientName, base: Path, *, project: bool) -> Installed:
    plugin = PLUGINS[client]
    hooks = _read(base / plugin.hooks[project]).get("hooks", {})
    our_hooks = [entry for entries in hooks.values() for entry in entries if _is_ours(entry)]
    servers = base / plugin.servers[project]
    text = servers.read_text(encoding="utf-8") if servers.is_file() else ""
    served = BEGIN in text if servers.suffix == ".toml" else NAME in _read(servers).get("mcpServers", {})
    return Installed(client, len(our_hooks), served, (base / plugin.skill).is_file(), str(base))


def _is_ours(entry: Any) -> bool:
    return MODULE in json.dumps(entry)


def _with_hooks(settings: dict[str, Any], plugin: Plugin, command: str) -> dict[str, Any]:
    """Return the settings with a hook for each event."""
    changed = _drop_hooks(settings)
    is_cursor = plugin.events[0][0].islower()
    our_hook = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
    entry: dict[str, Any] = {"command": command} if is_cursor else {"hooks": [our_hook]}
    hooks = dict(changed.get("hooks", {}))
    for event in plugin.events:
        hooks[event] = [*hooks.get(event, []), entry]
    return {**({"version": 1} if is_cursor else {}), **changed, "hooks": hooks}


def _drop_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without our hooks, and without what only these needed."""
    hooks = {
        event: [hook_entry for hook_entry in entries if not _is_ours(hook_entry)]
        for event, entries in settings.get("hooks", {}).items()
    }
    other_hooks = {
        event: entries for event, entries in hooks.items() if entries or not settings["hooks"][event]
    }
    rest = {name: section for name, section in settings.items() if name != "hooks"}
    if other_hooks or settings.get("hooks") == {}:
        return {**settings, "hooks": other_hooks}
    return {} if rest == {"version": 1} else rest


def _change_servers(path: Path, server: dict[str, Any] | None) -> None:
    """Set or remove the entry of the MCP server."""
    if path.suffix == ".toml":
        _change_toml(path, server)
        return

    def change(settings: dict[str, Any]) -> dict[str, Any]:
        servers = {
            name: other_server
            for name, other_server in settings.get("mcpServers", {}).items()
            if name != NAME
        }
        if server is not None:
            servers[NAME] = server
        rest = {name: section for name, section in settings.items() if name != "mcpServers"}
        return {**settings, "mcpServers": servers} if servers else rest

    _change(path, change)


def _change_toml(path: Path, server: dict[str, Any] | None) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    text = before + rest.partition(END)[2] if begin else text
    if server is not None:
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in server.items()]
        text = f"{text}{BEGIN}[mcp_servers.{NAME}]\n{''.join(lines)}{END}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise InvalidInput("client", f"{path} cannot be changed: {fault}") from fault
    _write(path, text)


def _change(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change a JSON file, which is deleted when it becomes empty."""
    settings = _read(path)
    changed = change(settings)
    if changed != settings:
        _write(path, json.dumps(changed, indent=2, ensure_ascii=False) + "\n" if changed else "")


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file. Raises InvalidInput for anything else, which is not overwritten."""
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8") or "{}")
    except ValueError as fault:
        raise InvalidInput(
            "client", f"{path} is not valid JSON: {fault}. Correct it, then run the command again"
        ) from fault
    is_usable = isinstance(settings, dict) and isinstance(settings.get("hooks", {}), dict)
    if not is_usable or not isinstance(settings.get("mcpServers", {}), dict):
        raise InvalidInput("client", f"{path} has an unknown form: `hooks` and `mcpServers` must be objects")
    return dict(settings)


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, or delete it if nothing is left. A symbolic link is kept."""
    path = path.resolve()
    if not text:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with open_for_writing(new) as file:
        file.write(text.encode())
    new.chmod(mode)
    new.replace(path)


AGENT_COMMANDS: Final = {
    "install": install, "uninstall": uninstall, "status": status,
}  # fmt: skip

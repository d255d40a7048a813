"""agent install, status and uninstall: the files of each client, and what stands in them already."""

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conspectus.cli import agent
from conspectus.cli import agent_hook as hook
from conspectus.cli.options import agent_of
from conspectus.errors import InvalidInput
from tests.cli.conftest import Shell

OWN: dict[str, dict[str, Any]] = {
    ".claude/settings.json": {
        "model": "opus",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
    },
    ".claude.json": {"mcpServers": {"other": {"command": "x"}}, "projects": {}},
    ".codex/hooks.json": {},
    ".cursor/hooks.json": {"version": 1, "hooks": {"stop": [{"command": "say done"}]}},
    ".cursor/mcp.json": {"mcpServers": {}},
}
TOML = 'model = "x"\n\n[mcp_servers.other]\ncommand = "y"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with settings of all clients."""
    folder = tmp_path / "home"
    for name, content in OWN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / ".codex/config.toml").write_text(TOML, encoding="utf-8")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def read_json(home: Path, name: str) -> Any:
    return json.loads((home / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("client", agent.PLUGINS)
def test_what_is_installed_is_removed_and_the_rest_stays(shell: Shell, home: Path, client: str) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    for _ in range(2):
        assert shell("agent", "install", client).code == 0
    events = next(plugin.events for name, plugin in agent.PLUGINS.items() if name == client)
    (row,) = shell("agent", "status", "--json").json
    assert (row["client"], row["hooks"], row["server"], row["skill"]) == (
        client,
        len(events),
        True,
        True,
    )
    assert shell("agent", "uninstall", client).code == 0
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert before.keys() - after.keys() <= {home / ".codex/hooks.json", home / ".cursor/mcp.json"}
    for path in after:
        if path.suffix == ".json":
            assert json.loads(after[path]) == json.loads(before[path])
        else:
            assert after[path] == before[path]
    assert all(not status["hooks"] for status in shell("agent", "status", "--json").json)


def test_the_settings_of_claude_code(shell: Shell, home: Path, tmp_path: Path) -> None:
    installed = shell("agent", "install", "claude-code", "--max-tokens", "300")
    assert f"memories are in {shell.folder / 'data'}; set CONSPECTUS_PATH" in installed.err
    settings = read_json(home, ".claude/settings.json")
    assert settings["model"] == "opus" and len(settings["hooks"]["Stop"]) == 2
    (start,) = settings["hooks"]["SessionStart"]
    (entry,) = start["hooks"]
    assert (entry["type"], entry["timeout"]) == ("command", 5)
    (tmp_path / "data" / "agent" / hook.STARTED).touch()
    event = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "SessionStart", "source": "startup"}
    done = subprocess.run(entry["command"], shell=True, input=json.dumps(event).encode(), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    server = read_json(home, ".claude.json")["mcpServers"]
    assert server["conspectus"]["args"][-2:] == ["--project", "."] and "other" in server
    assert (tmp_path / "data" / "agent").stat().st_mode & 0o777 == 0o700


def test_the_settings_of_codex_and_of_cursor(shell: Shell, home: Path) -> None:
    shell("agent", "install", "codex")
    config = tomllib.loads((home / ".codex/config.toml").read_text(encoding="utf-8"))
    assert config["mcp_servers"]["conspectus"]["args"][0] == "mcp" and "other" in config["mcp_servers"]
    assert read_json(home, ".codex/hooks.json")["hooks"].keys() == {
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
    }
    shell("agent", "install", "cursor")
    hooks = read_json(home, ".cursor/hooks.json")
    assert hooks["version"] == 1 and "agent_hook.run" in hooks["hooks"]["beforeSubmitPrompt"][0]["command"]
    assert read_json(home, ".cursor/mcp.json")["mcpServers"]["conspectus"]["args"][-1] == "${workspaceFolder}"


def test_a_project_has_files_of_its_own(
    shell: Shell, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "repo" / "src")
    assert shell("agent", "install", "claude-code", "--project").code == 0
    created = {
        str(path.relative_to(tmp_path / "repo")) for path in (tmp_path / "repo").rglob("*") if path.is_file()
    }
    skill = ".claude/skills/conspectus/SKILL.md"
    assert created == {".claude/settings.local.json", ".mcp.json", skill}
    assert read_json(home, ".claude/settings.json") == OWN[".claude/settings.json"]
    assert shell("agent", "uninstall", "claude-code", "--project").code == 0
    assert not [path for path in (tmp_path / "repo").rglob("*") if path.is_file()]


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', "not json"])
def test_a_file_of_an_unknown_form_is_left_alone(shell: Shell, home: Path, text: str) -> None:
    path = home / ".claude/settings.json"
    path.write_text(text, encoding="utf-8")
    failed = shell("agent", "install", "claude-code")
    assert failed.code == 2 and "settings.json" in failed.err
    assert path.read_text(encoding="utf-8") == text
    assert shell("agent", "install", "codex", "--data-dir", "postgresql://host/db").code == 2


def test_memories_of_a_project_are_shown_and_edited(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    project = ("--project", tmp_path / "repo")
    assert shell("memory", "add", "Use tabs.", "--kind", "note", *project).code == 0
    (memory,) = shell("memory", "list", *project, "--json").json["memories"]
    assert memory["scope"]["agent"] == str(tmp_path / "repo")
    assert shell("memory", "update", memory["id"], "--text", "Use spaces.", *project).code == 0
    assert "Use spaces." in shell("memory", "list", *project).out
    assert shell("memory", "delete", memory["id"], "--yes", *project).code == 0
    assert "spaces" not in shell("memory", "list", *project).out
    with pytest.raises(InvalidInput, match="project"):
        agent_of("a", tmp_path)


@pytest.mark.usefixtures("home")
def test_the_data_folder_is_private_before_the_first_write(shell: Shell) -> None:
    before = os.umask(0)
    try:
        assert shell("agent", "install", "codex").code == 0
    finally:
        os.umask(before)
    folders = (shell.folder / "data", shell.folder / "data" / agent.STATE)
    assert [stat.filemode(path.stat().st_mode) for path in folders] == ["drwx------"] * 2


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize("client", agent.PLUGINS)
def test_links_out_of_a_repository_are_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell, client: str, command: str
) -> None:
    plugin = next(plugin for name, plugin in agent.PLUGINS.items() if name == client)
    for number, name in enumerate((plugin.hooks[1], plugin.servers[1], plugin.skill)):
        target, repository = tmp_path / f"target{number}", tmp_path / f"repository{number}"
        target.write_text("")
        (repository / ".git").mkdir(parents=True)
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).symlink_to(target)
        monkeypatch.chdir(repository)
        refused = shell("agent", command, client, "--project")
        assert refused.code != 0 and "is a link to a file outside of the repository" in refused.err
        assert target.read_text() == "" and (repository / name).is_symlink()


def test_links_in_the_home_folder_are_kept(home: Path, tmp_path: Path, shell: Shell) -> None:
    target = tmp_path / "dotfiles.json"
    (home / ".claude/settings.json").rename(target)
    (home / ".claude/settings.json").symlink_to(target)
    assert shell("agent", "install", "claude-code").code == 0
    assert (home / ".claude/settings.json").is_symlink() and "SessionStart" in target.read_text()

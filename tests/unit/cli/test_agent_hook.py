"""Projects of hooks: real and forged worktrees and submodules; and the files that hooks write."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conspectus.cli import agent_helper
from conspectus.cli import agent_hook as hook
from conspectus.cli.options import agent_of

GIT = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *GIT, *arguments], check=True, capture_output=True)


def make_repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "trunk", *options)
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A repository with a linked worktree beside it, `tmp_path / "side"`."""
    root = make_repository(tmp_path / "victim")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    return root


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An unpacked folder."""
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder


@pytest.fixture(params=["absolute", "relative"])
def way_back(request: pytest.FixtureRequest, victim: Path, tmp_path: Path) -> None:
    """The worktree names its repository and back by absolute paths, or by relative ones as newer Gits do."""
    if request.param == "relative":
        linked = victim / ".git/worktrees/side"
        (linked / "gitdir").write_text(f"{os.path.relpath(tmp_path / 'side/.git', linked)}\n")
        (tmp_path / "side/.git").write_text("gitdir: ../victim/.git/worktrees/side\n")


@pytest.mark.usefixtures("way_back")
def test_a_worktree_has_the_project_of_its_repository(victim: Path, tmp_path: Path) -> None:
    (tmp_path / "side/src").mkdir()
    assert hook.project_root(str(tmp_path / "side/src")) == str(victim)
    assert agent_of(None, tmp_path / "side") == str(victim)
    assert agent_helper.branch_of(str(tmp_path / "side/src")) == "side"


def test_a_worktree_reached_through_a_link_is_the_same_one(victim: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "side")
    assert hook.project_root(str(tmp_path / "link")) == str(victim)


def test_worktrees_of_a_bare_repository_share_a_project_of_their_own(tmp_path: Path) -> None:
    roots = set()
    for name in ("one", "two"):
        bare = tmp_path / f"{name}.git"
        subprocess.run(["git", "clone", "-q", "--bare", str(make_repository(tmp_path / name)), str(bare)])
        for side in ("a", "b"):
            git(bare, "worktree", "add", "-q", "-b", side, str(tmp_path / name / side))
            roots.add(hook.project_root(str(tmp_path / name / side)))
    assert roots == {str(tmp_path / "one.git"), str(tmp_path / "two.git")}


def test_submodules_and_their_worktrees_are_projects_of_their_own(victim: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        git(victim, "submodule", "add", "-q", str(make_repository(tmp_path / name)), name)
        git(victim / name, "worktree", "add", "-q", "-b", "side", str(tmp_path / f"side-{name}"))
        assert hook.project_root(str(victim / name)) == str(victim / name)
        assert agent_helper.branch_of(str(victim / name)) == "trunk"
    roots = {hook.project_root(str(tmp_path / f"side-{name}")) for name in ("a", "b")}
    assert len(roots) == 2 and str(victim) not in roots


def test_a_separate_git_directory_is_a_project_of_its_folder(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", "--separate-git-dir", str(tmp_path / "elsewhere"))
    assert hook.project_root(str(root)) == str(root)
    assert agent_helper.branch_of(str(root)) == "trunk"


def forge_commondir(folder: Path, victim: Path) -> None:
    (folder / "fake").mkdir()
    (folder / "fake/commondir").write_text(f"{victim}/.git\n")
    (folder / "fake/gitdir").write_text(f"{folder}/.git\n")
    (folder / ".git").write_text("gitdir: fake\n")


def forge_relative_commondir(folder: Path, victim: Path) -> None:
    forge_commondir(folder, victim)
    (folder / "fake/commondir").write_text("../../victim/.git\n")


def forge_worktrees_folder(folder: Path, victim: Path) -> None:
    (folder / "worktrees/side").mkdir(parents=True)
    (folder / "worktrees/side/commondir").write_text(f"{victim}/.git\n")
    (folder / "worktrees/side/gitdir").write_text(f"{folder}/.git\n")
    (folder / ".git").write_text("gitdir: worktrees/side\n")


def name_real_worktree(folder: Path, victim: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {victim}/.git/worktrees/side\n")


def link_git_file(folder: Path, victim: Path) -> None:
    (folder / ".git").symlink_to(victim.parent / "side/.git")


def link_repository(folder: Path, victim: Path) -> None:
    (folder / ".git").symlink_to(victim / ".git")


def copy_worktree(folder: Path, victim: Path) -> None:
    shutil.copytree(victim.parent / "side", folder, dirs_exist_ok=True)


def name_repository_itself(folder: Path, victim: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {victim}/.git\n")


def name_nothing(folder: Path, victim: Path) -> None:
    (folder / ".git").write_bytes(b"gitdir: \xff\xfe/nowhere\n\n")


FORGERIES: tuple[Callable[[Path, Path], None], ...] = (
    forge_commondir,
    forge_relative_commondir,
    forge_worktrees_folder,
    name_real_worktree,
    link_git_file,
    link_repository,
    copy_worktree,
    name_repository_itself,
    name_nothing,
)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_worktree_is_a_project_of_its_own(
    forge: Callable[[Path, Path], None], archive: Path, victim: Path
) -> None:
    forge(archive, victim)
    (archive / "src").mkdir()
    assert hook.project_root(str(archive / "src")) == str(archive)
    assert agent_of(None, archive) == str(archive)


@pytest.mark.parametrize("part", ["side", "side/.git", "victim/.git/worktrees/side", "victim/.git"])
def test_a_worktree_and_its_repository_have_one_owner(victim: Path, tmp_path: Path, part: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files to others")
    os.chown(tmp_path / part, 12_345, 12_345)
    assert hook.project_root(str(tmp_path / "side")) == str(tmp_path / "side")


def test_projects_with_long_names_share_nothing() -> None:
    customers = ("甲方", "乙方", "\ud800")
    roots = [
        f"/home/li/文档/{customer}公司的内部管理系统/代码仓库/主干分支/后端程序和接口"
        for customer in customers
    ]
    roots += ["/" + "🦊" * length for length in (40, 41)]
    names = {hook.agent_name(root) for root in roots}
    assert len(names) == len(roots)
    assert max(len(hook.percent_encoded(name)) for name in names) <= hook.MAX_NAME_LENGTH


def test_a_branch_is_read_from_regular_files_only(archive: Path) -> None:
    (archive / ".git").mkdir()
    os.mkfifo(archive / ".git/HEAD")
    assert agent_helper.branch_of(str(archive)) == ""


WRITERS: dict[str, Callable[[], object]] = {
    hook.LOG: lambda: hook.log(".", "event_failed"),
    hook.SPOOL: lambda: hook.spool("codex", "{}"),
    hook.STARTED: hook.start_helper,
    agent_helper.LOCK: lambda: agent_helper.main(Path.cwd()),
}
"""What writes each file of the folder of hooks; the socket is made by `bind`, which follows no link."""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder, before, umask = tmp_path / "agent", Path.cwd(), os.umask(0o077)
    folder.mkdir()
    os.chdir(folder)
    yield folder
    os.chdir(before)
    os.umask(umask)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_the_hooks_is_not_written_through_a_link(state: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    os.utime(target, (1, 1))
    (state / name).symlink_to(target)
    os.utime(name, (1, 1), follow_symlinks=False)
    with pytest.raises(OSError, match=name):
        WRITERS[name]()
    assert target.read_text() == "mine" and target.stat().st_mtime == 1


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_the_hooks_is_not_made_behind_a_link(state: Path, tmp_path: Path, name: str) -> None:
    (state / name).symlink_to(tmp_path / "target")
    os.utime(name, (1, 1), follow_symlinks=False)
    with pytest.raises(OSError, match=name):
        WRITERS[name]()
    assert not (tmp_path / "target").exists()


def test_a_pipe_in_place_of_the_spool_stops_no_hook(state: Path) -> None:
    os.mkfifo(state / hook.SPOOL)
    began = time.monotonic()
    with pytest.raises(OSError, match=hook.SPOOL):
        hook.spool("codex", "{}")
    assert time.monotonic() - began < 5

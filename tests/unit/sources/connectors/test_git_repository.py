"""A Git repository as a wiki: what the contract of connectors does not say."""

import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.web_server import Answer, ScriptedServer

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, TooLarge
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.settings import Settings
from conspectus.sources.connectors.git_process import Git
from conspectus.sources.connectors.git_remote import Remote, check_remote
from conspectus.sources.connectors.git_repository import GitRepository, Repository
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.web.address_policy import AddressPolicy

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None and not os.environ.get("CI"), reason="git is not installed"
)
ALONE = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
NAME = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org", "-c", "protocol.file.allow=always")
PUBLIC = "93.184.215.14"


@pytest.mark.parametrize(
    ("status", "refused"), [(401, True), (403, True), (404, True), (500, False), (418, False)]
)
async def test_only_an_answer_of_the_server_is_a_refusal(status: int, refused: bool, tmp_path: Path) -> None:
    git = Git(tmp_path / "copy.git", "the repository")
    await git.run("init", "--bare", "--quiet")
    headers = {"www-authenticate": 'Basic realm="git"'} if status == 401 else {}
    async with ScriptedServer({"/team.git/info/refs": Answer(status=status, headers=headers)}) as server:
        address = f"http://127.0.0.1:{server.port}/team.git"
        with pytest.raises(FetchFailed) as answered:
            await git.run("fetch", address, "main", remote=Remote(address, "http"))
    with pytest.raises(FetchFailed) as unanswered:
        await git.run("fetch", address, "main", remote=Remote(address, "http"))
    assert (answered.value.refused, answered.value.passing) == (refused, not refused)
    assert (unanswered.value.refused, unanswered.value.passing) == (False, True)


@dataclass
class Origin:
    """The repository that others push to."""

    root: Path

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *NAME, *arguments]
        return subprocess.run(command, check=True, env=ALONE, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    created = Origin(tmp_path / "origin")
    created.write("guide/setup.md", "# Set up\n" + "A line of the guide.\n" * 30)
    created.write("notes/a.md", "# Note\n")
    created.commit()
    return created


@pytest.fixture
def connector(origin: Origin, tmp_path: Path) -> GitRepository:
    return GitRepository(Repository(str(origin.root)), tmp_path / "copy")


async def list_changes(connector: GitRepository, cursor: str | None = None) -> list[Listing]:
    return [listing async for listing in connector.changes(cursor)]


def pages_by_title(listings: Sequence[Listing]) -> dict[str, ConnectorEntry]:
    return {page.title: page for listing in listings for page in listing.entries}


async def test_a_page_renamed_with_changes_keeps_its_key(origin: Origin, connector: GitRepository) -> None:
    before = await list_changes(connector)
    (origin.root / "guide/setup.md").rename(origin.root / "notes/installation.md")
    with (origin.root / "notes/installation.md").open("a") as file:
        file.write("One more line.\n")
    origin.commit()
    (last,) = await list_changes(connector, before[-1].cursor)
    assert [(page.key, page.space) for page in last.entries] == [
        (pages_by_title(before)["Set up"].key, "notes")
    ]
    assert (last.gone, last.spaces_gone, last.complete) == ((), ("guide",), False)


async def test_rewritten_history_is_listed_as_a_whole(origin: Origin, connector: GitRepository) -> None:
    before = await list_changes(connector)
    origin.git("mv", "notes/a.md", "notes/b.md")
    origin.git("commit", "--quiet", "--amend", "--message", "Another first commit")
    after = await list_changes(connector, before[-1].cursor)
    assert after[-1].complete
    assert {title: page.key for title, page in pages_by_title(after).items()} == {
        "setup": pages_by_title(before)["Set up"].key, "Note": pages_by_title(before)["Note"].key,
    }  # fmt: skip
    assert [listing.complete for listing in await list_changes(connector, after[-1].cursor)] == [False]


async def test_a_lost_copy_is_made_again(origin: Origin, connector: GitRepository, tmp_path: Path) -> None:
    before = await list_changes(connector)
    shutil.rmtree(tmp_path / "copy")
    (after,) = await list_changes(connector, before[-1].cursor)
    assert (after.entries, after.gone) == ((), ())


async def test_files_that_are_no_pages_are_named(origin: Origin, connector: GitRepository) -> None:
    origin.write("guide/talk.mp3", "ID3")
    origin.write(".github/logo.png", "PNG")
    origin.commit()
    assert [listing.not_pages async for listing in connector.changes(None)][-1] == ("guide/talk.mp3",)


async def test_locks_of_a_killed_git_do_not_matter(
    origin: Origin, connector: GitRepository, tmp_path: Path
) -> None:
    await list_changes(connector)
    (tmp_path / "copy/refs/heads/wiki.lock").touch()
    (tmp_path / "copy/config.lock").touch()
    origin.write("notes/a.md", "changed")
    origin.commit()
    assert await list_changes(connector)


async def test_a_branch_and_a_folder(origin: Origin, tmp_path: Path) -> None:
    origin.git("checkout", "--quiet", "-b", "docs/next")
    origin.write("guide/more/page.md", "# Only here")
    origin.commit()
    origin.git("checkout", "--quiet", "main")
    repository = Repository(f"file://{origin.root}", branch="docs/next", folder="guide/")
    pages = pages_by_title(await list_changes(GitRepository(repository, tmp_path / "copy")))
    assert {title: (page.key, page.space) for title, page in pages.items()} == {
        "Set up": ("path:setup.md", "."), "Only here": ("path:more/page.md", "more"),
    }  # fmt: skip


@pytest.mark.parametrize("options", [{"branch": "missing"}, {"folder": "missing"}], ids=["branch", "folder"])
async def test_what_is_missing_is_a_failure(origin: Origin, tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(FetchFailed) as failure:
        await list_changes(GitRepository(Repository(str(origin.root), **options), tmp_path / "copy"))
    assert failure.value.passing


async def test_a_repository_without_commits_is_a_failure(tmp_path: Path) -> None:
    empty = Origin(tmp_path / "empty")
    with pytest.raises(FetchFailed):
        await list_changes(GitRepository(Repository(str(empty.root)), tmp_path / "copy"))


async def test_links_submodules_and_hidden_files_are_left_out(origin: Origin, tmp_path: Path) -> None:
    other = Origin(tmp_path / "other")
    other.write("inner.md", "inner")
    other.commit()
    (origin.root / "notes/link.md").symlink_to("/etc/passwd")
    origin.write(".github/x.md", "x")
    origin.write("node_modules/x.md", "x")
    origin.git("submodule", "--quiet", "add", str(other.root), "module.md")
    origin.commit()
    pages = pages_by_title(await list_changes(GitRepository(Repository(str(origin.root)), tmp_path / "copy")))
    assert pages.keys() == {"Set up", "Note"}


async def test_nothing_of_the_repository_or_the_machine_is_run(
    origin: Origin, connector: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, script = tmp_path / "ran", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    for hook in ("post-checkout", "post-merge", "reference-transaction", "pre-receive", "update"):
        shutil.copy(script, origin.root / ".git/hooks" / hook)
    origin.write(".gitattributes", "*.md filter=evil diff=evil\n")
    origin.git("config", "filter.evil.smudge", str(script))
    origin.git("config", "diff.evil.textconv", str(script))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text(f"[core]\n\thooksPath = {origin.root}/.git/hooks\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    origin.git("add", "--all")
    origin.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "Hostile")
    ran.unlink(missing_ok=True)
    listings = await list_changes(connector)
    assert [await connector.fetch(page) for page in pages_by_title(listings).values()]
    assert not ran.exists()
    assert not (tmp_path / "copy/hooks").exists()


@pytest.mark.parametrize(
    "address",
    [
        "", "-uexec", "--upload-pack=touch /tmp/x", "ext::sh -c touch% /tmp/x", "fd::17", "relative/path",
        "git@host:path", "git://example.org/x", "http://example.org/x", "ftp://example.org/x",
        "ext://x", "file+ext::sh", "HTTP://example.org", "~/x", "\n/x",
    ],
)  # fmt: skip
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InvalidInput):
        Repository(address)


@pytest.mark.parametrize(
    "address",
    [
        "https://user:secret@example.org/x", "https://token@example.org/x", "ssh://git:secret@example.org/x",
        "ssh://-oProxyCommand=x/x", "ssh://-oProxyCommand=x@example.org/x", "ssh://a b@example.org/x",
        "https://exa mple.org/x", "https:///x", "file://example.org/x", "file://x", "/nul\0",
    ],
)  # fmt: skip
async def test_addresses_that_hold_what_they_must_not(address: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        await check_remote(address, protocols=("https", "ssh", "file"), boundary=AddressPolicy())
    assert "secret" not in str(fault.value)


@pytest.mark.parametrize("protocols", [(), ("https",), ("ssh", "https")])
def test_protocols_can_be_left_out(protocols: tuple[str, ...]) -> None:
    for address in ("/tmp", "file:///tmp"):
        with pytest.raises(InvalidInput):
            Repository(address, protocols=protocols)


@pytest.mark.parametrize(
    "branch", ["-x", "--all", "a..b", "a b", "a:b", "", "+x", "refs/*", "x.lock", "a@{1}", "a\n"]
)
def test_branches_that_are_none(branch: str) -> None:
    with pytest.raises(InvalidInput):
        Repository("/tmp", branch=branch)


async def test_hosts_inside_are_not_asked(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0x7f.1", "printer.local")
    for address in (f"{scheme}://{host}/x.git" for scheme in ("https", "ssh") for host in hosts):
        with pytest.raises(ForbiddenAddress):
            await list_changes(GitRepository(Repository(address), tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


async def test_names_that_lead_inside_are_not_asked() -> None:
    async def inside(name: str, port: int) -> Sequence[str]:
        return [PUBLIC, "10.0.0.7"]

    for address in ("https://example.org/x.git", "ssh://git@example.org/x.git"):
        with pytest.raises(ForbiddenAddress):
            await check_remote(address, protocols=("https", "ssh"), boundary=AddressPolicy(), resolve=inside)


async def test_git_is_held_to_the_addresses_that_were_checked() -> None:
    async def public(name: str, port: int) -> Sequence[str]:
        return [PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]

    web = await check_remote(
        "https://Example.org/x.git", protocols=("https",), boundary=AddressPolicy(), resolve=public
    )
    assert web.address == "https://example.org/x.git"
    assert web.settings == (
        f"http.curloptResolve=example.org:443:{PUBLIC},[2606:2800:21f:cb07:6820:80da:af6b:8b2c]",
    )
    address = "ssh://git@example.org:2222/~team/x.git"
    secure = await check_remote(address, protocols=("ssh",), boundary=AddressPolicy(), resolve=public)
    assert secure.address == address
    command = secure.environment["GIT_SSH_COMMAND"]
    assert f"HostName={PUBLIC} -o 'HostKeyAlias=[example.org]:2222'" in command


async def test_an_allowed_host_is_asked(tmp_path: Path) -> None:
    boundary = AddressPolicy.from_entries(["127.0.0.1"])
    repository = Repository("https://127.0.0.1:1/x.git", boundary=boundary)
    with pytest.raises(FetchFailed) as failure:
        await list_changes(GitRepository(repository, tmp_path / "copy"))
    assert not isinstance(failure.value, ForbiddenAddress)
    assert "git fetch" in str(failure.value)


async def test_git_that_takes_too_long_is_killed(origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="took longer than"):
        await Git(tmp_path, "here", seconds=0.2).run("-c", "alias.wait=!sleep 600", "wait")


async def test_without_git_the_error_says_what_to_do(
    origin: Origin, connector: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchFailed, match="git is not installed"):
        await list_changes(connector)


async def test_a_blob_over_the_limit_is_listed_and_fails(origin: Origin, tmp_path: Path) -> None:
    origin.write("notes/large.md", "x" * 2_000)
    origin.write("notes/binary.md", "%PDF-1.7")
    origin.commit()
    files = LocalFiles(Settings(max_file_bytes=1_000))
    connector = GitRepository(Repository(str(origin.root)), tmp_path / "copy", files=files)
    pages = pages_by_title(await list_changes(connector))
    assert pages.keys() == {"Set up", "Note", "large", "binary"}
    with pytest.raises(TooLarge):
        await connector.fetch(pages["large"])


async def test_pages_are_read_in_portions(origin: Origin, tmp_path: Path) -> None:
    for number in range(600):
        origin.write(f"many/{number}.md", f"---\nid: n{number}\n---\n# Title {number}\n")
    origin.commit()
    pages = pages_by_title(await list_changes(GitRepository(Repository(str(origin.root)), tmp_path / "copy")))
    assert len(pages) == 602
    assert pages["Title 599"].key == "id:n599"

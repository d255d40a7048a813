"""Installed connectors: those of the product, and those that packages add."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.ports.web import Fetcher
from conspectus.settings import Settings
from conspectus.sources.connectors.git_repository import GitRepository
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.sources.connectors.mediawiki import MediaWiki
from conspectus.sources.connectors.registry import BUILT_IN, InstalledConnectors
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

MODULE = """
from dataclasses import dataclass, field
from typing import Annotated

from conspectus.connectors import Checked, Example, Length, Range, Secret
from conspectus.errors import InvalidInput


@dataclass(frozen=True)
class Options(Checked):
    board: Annotated[str, Length(1, 10), "Name of the board.", Example("ideas")]
    depth: Annotated[int, Range(1, 5), "Levels."] = 2
    share: Annotated[float | None, "Share."] = None
    labels: Annotated[tuple[str, ...], "Labels."] = field(default_factory=tuple)
    token: Annotated[str | None, Length(8, 20), "Token.", Secret] = field(default=None, repr=False)


@dataclass(frozen=True)
class Locked(Checked):
    password: Annotated[str, Length(1, 20), "Password.", Secret] = field(repr=False)


@dataclass(frozen=True)
class Leaky(Checked):
    password: Annotated[str, "Password.", Secret]


class Boards:
    title = "Boards"
    options = Options

    def is_local(self, options):
        return options.board == "local"

    def create(self, options, site):
        if options.board == "refused":
            raise InvalidInput("board", "is refused")
        return options, site


class LockedBoards(Boards):
    options = Locked


class LeakyBoards(Boards):
    options = Leaky
"""


@pytest.fixture
def installed(tmp_path: Path) -> InstalledConnectors:
    return InstalledConnectors(tmp_path / "copies", Settings())


@pytest.fixture
def fetcher() -> Fetcher:
    return WebFetcher(FetchLimits(1_000, 1, 1.0, ()))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that adds connectors, as pip leaves it."""
    folder = tmp_path / "packages"
    metadata = folder / "boards-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: boards\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[conspectus.connectors]\nboards = boards_of_a_package:Boards\ngit = boards_of_a_package:Boards\n"
        "broken = module_that_is_not_there:Boards\nempty = boards_of_a_package:Nothing\n"
        "locked = boards_of_a_package:LockedBoards\nleaky = boards_of_a_package:LeakyBoards\n"
    )
    (folder / "boards_of_a_package.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def make_connection(connector: str, options: Mapping[str, Any]) -> Connection:
    return Connection("c1", "notes", "ann", "name", connector, options)


def test_the_connectors_of_the_product(installed: InstalledConnectors) -> None:
    built_in = {entry_point.name for entry_point in BUILT_IN}
    kinds = {kind.name: kind for kind in installed.list_kinds() if kind.name in built_in}
    assert [*kinds] == ["git", "markdown", "mediawiki"]
    assert all(option.help for kind in kinds.values() for option in kind.options)
    address, branch, folder = kinds["git"].options
    assert (address.name, address.type, address.required) == ("address", "text", True)
    assert (branch.name, branch.required, branch.default, branch.example) == ("branch", False, None, "main")
    assert (folder.name, folder.default) == ("folder", "")
    assert [option.type for option in kinds["mediawiki"].options] == ["text", "integers"]


def test_each_is_made_of_its_options(
    installed: InstalledConnectors, fetcher: Fetcher, tmp_path: Path
) -> None:
    for connector, options, connector_class in (
        ("markdown", {"path": str(tmp_path), "watch": True}, MarkdownFolder),
        ("git", {"address": "https://git.example.org/x.git", "branch": "main"}, GitRepository),
        ("mediawiki", {"address": "https://wiki.example.org/w/api.php", "namespaces": [0, 4]}, MediaWiki),
    ):
        assert isinstance(installed.create(make_connection(connector, options), fetcher, {}), connector_class)


@pytest.mark.parametrize(
    ("connector", "options", "reason"),
    [
        ("gut", {}, "connector: 'gut' is not installed; there are .*git, .*markdown, mediawiki"),
        ("git", {}, "options: address is missing"),
        ("git", {"address": "/x", "brunch": "m"}, "'brunch' is not an option of git; give address, branch"),
        ("git", {"address": ""}, "address: must have from 1"),
        ("git", {"address": 7}, "address: 7 cannot be used; give a string"),
        ("git", {"address": "/x\0"}, "address|NUL"),
        ("git", {"address": "/x", "branch": "../x"}, "branch: "),
        ("git", {"address": "ftp://x"}, "address: use https"),
        ("markdown", {"path": "notes"}, "path: must be an absolute path"),
        ("markdown", {"path": "/notes\0"}, "path: must be an absolute path"),
        ("markdown", {"path": "/notes", "watch": "yes"}, "watch: 'yes' cannot be used; give true or false"),
        (
            "mediawiki",
            {"address": "https://w.example.org/api.php", "namespaces": []},
            "namespaces: must have",
        ),
        ("mediawiki", {"address": "https://w.example.org/api.php", "namespaces": [True]}, "namespaces"),
        ("mediawiki", {"address": "https://w.example.org/api.php", "namespaces": "0"}, "namespaces"),
        ("mediawiki", {"address": "https://w.example.org/api.php?x=1"}, "address: "),
    ],
)
def test_wrong_options_are_named(
    installed: InstalledConnectors, fetcher: Fetcher, connector: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        installed.create(make_connection(connector, options), fetcher, {})


@pytest.mark.parametrize(
    ("connector", "options", "is_local"),
    [
        ("markdown", {"path": "/notes"}, True),
        ("git", {"address": "/notes.git"}, True),
        ("git", {"address": "file:///notes.git"}, True),
        ("git", {"address": "ssh://git@git.example.org/x"}, True),
        ("git", {"address": "https://git.example.org/x"}, False),
        ("git", {"address": "HTTPS://git.example.org/x"}, False),
        ("mediawiki", {"address": "https://w.example.org/api.php"}, False),
    ],
)
def test_what_reads_this_machine(
    installed: InstalledConnectors, connector: str, options: dict[str, Any], is_local: bool
) -> None:
    assert installed.is_local(make_connection(connector, options), {}) is is_local


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_connector(installed: InstalledConnectors, fetcher: Fetcher, tmp_path: Path) -> None:
    kinds = {kind.name: kind for kind in installed.list_kinds()}
    assert [option.type for option in kinds["boards"].options] == [
        "text",
        "integer",
        "number",
        "texts",
        "text",
    ]
    assert [option.default for option in kinds["boards"].options] == [None, 2, None, (), None]
    connection = make_connection("boards", {"board": "local", "labels": ["a"]})
    connector: Any = installed.create(connection, fetcher, {})
    options, site = connector
    assert (options.board, options.depth, options.labels) == ("local", 2, ("a",))
    assert (site.folder, site.fetcher) == (tmp_path / "copies" / "c1", fetcher)
    assert installed.is_local(connection, {})
    for board, reason in (("far too long a name", "board: must have"), ("refused", "board: is refused")):
        with pytest.raises(InvalidInput, match=reason):
            installed.create(make_connection("boards", {"board": board}), fetcher, {})
    with pytest.raises(InvalidInput, match="depth: must be from 1 to 5"):
        installed.create(make_connection("boards", {"board": "b", "depth": 9}), fetcher, {})


@pytest.mark.usefixtures("package")
def test_credentials_are_apart_from_options(installed: InstalledConnectors, fetcher: Fetcher) -> None:
    kinds = {kind.name: kind for kind in installed.list_kinds()}
    assert [option.secret for option in kinds["boards"].options] == [False] * 4 + [True]
    assert "password must be a text with field(repr=False)" in (kinds["leaky"].failure or "")
    connection = make_connection("boards", {"board": "b"})
    connector: Any = installed.create(connection, fetcher, {"token": "s3cret-token"})
    assert connector[0].token == "s3cret-token"
    assert "s3cret" not in repr(connector)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("connector", "options", "credentials", "reason"),
    [
        ("boards", {"board": "b", "token": "s3cret-token"}, {}, "'token' is not an option"),
        ("boards", {"board": "b"}, {"s3cret": "x"}, "a name is not a credential of boards; give token"),
        ("git", {"address": "/x"}, {"token": "s3cret"}, "a name is not a credential of git; it has none"),
        ("locked", {}, {}, "credentials: password is missing"),
        ("locked", {}, {"password": 53}, "password: a secret of another type cannot be used; give a string"),
        ("boards", {"board": "b"}, {"token": "s3cret"}, "token: must have from 8 to 20 characters"),
    ],
)
def test_wrong_credentials_are_named_and_not_repeated(
    installed: InstalledConnectors,
    fetcher: Fetcher,
    connector: str,
    options: dict[str, Any],
    credentials: dict[str, Any],
    reason: str,
) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        installed.create(make_connection(connector, options), fetcher, credentials)
    assert not any(secret in str(refused.value) for secret in ("s3cret", "53"))


@pytest.mark.usefixtures("package")
def test_no_package_replaces_a_connector_of_the_product(installed: InstalledConnectors) -> None:
    assert next(kind for kind in installed.list_kinds() if kind.name == "git").title == "Git repository"


@pytest.mark.usefixtures("package")
def test_a_package_that_cannot_be_loaded_stops_no_other(
    installed: InstalledConnectors, fetcher: Fetcher
) -> None:
    kinds = {kind.name: kind for kind in installed.list_kinds()}
    assert "module_that_is_not_there" in (kinds["broken"].failure or "")
    assert "Nothing" in (kinds["empty"].failure or "")
    assert kinds["git"].failure is None
    with pytest.raises(InvalidInput, match="'broken' cannot be loaded: No module named"):
        installed.create(make_connection("broken", {}), fetcher, {})


async def test_copies_are_deleted(installed: InstalledConnectors, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "c1"
    copy.mkdir(parents=True)
    await installed.forget(make_connection("git", {"address": "/x"}))
    assert not copy.exists()
    await installed.forget(make_connection("git", {"address": "/x"}))

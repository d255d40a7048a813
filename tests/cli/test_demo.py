"""`conspectus demo`: a store to look at, made once, in a folder that holds nothing else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conspectus import bootstrap, sync
from conspectus.model.memory import Scope
from conspectus.settings import Settings
from conspectus.sync import BlockingEngine
from tests.cli.conftest import Shell

SETTINGS = Settings(embedder="none")
ANN = Scope("ann", "helper")
SECRET = b"yellow card"


@pytest.fixture
def demo(shell: Shell) -> dict[str, str]:
    """The keys of a demo."""
    outcome = shell("demo", shell.folder / "demo", "--json")
    assert outcome.code == 0, outcome.err
    keys: dict[str, str] = outcome.json["keys"]
    return keys


@contextmanager
def open_demo(folder: Path) -> Iterator[BlockingEngine]:
    with sync.open(folder / "demo", settings=SETTINGS) as engine:
        yield engine


def count_documents(engine: BlockingEngine) -> dict[str, int]:
    return {
        collection.name: engine.documents.count(collection=collection.name)
        for collection in engine.collections.list()
    }


def test_the_files_of_the_guides_are_written_once_and_no_store_is_made(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)
    chat = shell.folder / "examples" / "chat.jsonl"
    written = shell("demo", "--examples", "--json").json
    assert {"examples/chat.jsonl", "examples/handbook/backups.md"} <= {*written}
    assert [path.name for path in shell.folder.iterdir()] == ["examples"]
    chat.write_text("mine", encoding="utf-8")
    again = shell("demo", "--examples")
    assert (again.code, again.out) == (0, "all files are in examples already\n")
    assert chat.read_text(encoding="utf-8") == "mine"


def test_it_has_what_the_console_shows_and_is_made_once(shell: Shell, demo: dict[str, str]) -> None:
    assert sorted(demo) == ["ann", "bob", "owner"]
    with open_demo(shell.folder) as engine:
        stored = count_documents(engine)
        assert stored == {"default": 16, "chat": 31, "cameras": 51, "memory": 14}
        assert engine.graph.list()[0].nodes == 40
        assert [entity.name for entity in engine.graph.list_entities() if entity.name == "Priya"] == ["Priya"]
        assert len(engine.keys.list("*")) == 3
    again = shell("demo", shell.folder / "demo", "--json")
    assert (again.code, again.json["keys"]) == (0, {})
    with open_demo(shell.folder) as engine:
        assert (count_documents(engine), len(engine.keys.list("*"))) == (stored, 3)


async def test_bob_reads_two_of_the_five_sources(shell: Shell, demo: dict[str, str]) -> None:
    async with bootstrap.open(shell.folder / "demo", settings=SETTINGS) as engine:
        people = {user: await engine.keys.authenticate(key) for user, key in demo.items()}
        lists = {user: engine.as_person(person).collections.list_sources() for user, person in people.items()}
        seen = {user: [source.name for source in await sources] for user, sources in lists.items()}
    everything = ["archive", "graph/default", "handbook", "operations", "product", "security"]
    assert seen == {"owner": everything, "ann": everything, "bob": ["handbook", "product"]}


def test_what_was_known_differs_from_what_was_true(shell: Shell, demo: dict[str, str]) -> None:
    with open_demo(shell.folder) as engine:
        july = datetime(2026, 7, 16, tzinfo=UTC)
        then, now = [
            engine.memory.recall("when do releases go out?", scope=ANN, as_of=instant).memories[0].memory
            for instant in (july, None)
        ]
        assert then.valid_until is not None and then.valid_until < july < then.known_until
        assert ("Tuesdays," in then.text, "Tuesdays and Thursdays" in now.text) == (True, True)
        assert engine.memory.count(scope=ANN) == 9
    assert [
        path for path in (shell.folder / "demo").rglob("*") if path.is_file() and SECRET in path.read_bytes()
    ] == []


def test_one_that_was_interrupted_is_completed(shell: Shell, demo: dict[str, str]) -> None:
    with open_demo(shell.folder) as engine:
        stored = count_documents(engine)
        engine.people.delete_user("bob")
    (shell.folder / "demo" / "demo.txt").write_text("")
    keys = json.loads(shell("demo", shell.folder / "demo", "--json").out)["keys"]
    with open_demo(shell.folder) as engine:
        assert count_documents(engine) == stored
        assert engine.keys.authenticate(keys["bob"]).name == "bob"


def test_a_folder_with_something_else_is_left_alone(shell: Shell) -> None:
    (shell.folder / "notes.md").write_text("mine")
    for target in (shell.folder, shell.folder / "notes.md"):
        refused = shell("demo", target)
        assert (refused.code, "neither empty nor a demo" in refused.err) == (2, True)
    assert [path.name for path in shell.folder.iterdir()] == ["notes.md"]
    assert shell("demo", shell.folder / "demo", "--data-dir", shell.folder / "data").code == 2


def test_it_ends_with_the_command_that_shows_it(shell: Shell) -> None:
    outcome = shell("demo", shell.folder / "demo")
    assert outcome.err.endswith(f"conspectus console --data-dir {shell.folder / 'demo'}\n")
    assert outcome.out.count("csp_") == 3

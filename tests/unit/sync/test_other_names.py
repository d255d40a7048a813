"""Names of methods in other libraries lead to the calls that do the same here."""

import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

import conspectus
from conspectus import MemorySelection, NewMemory, Settings
from conspectus.sync import BlockingEngine
from conspectus.sync.other_names import ENGINE_CALLS, MEMORY_CALLS

WORDS = {
    "QUERY": "'tea'",
    "USER": "'ann'",
    "TEXTS": "['tea']",
    "TEXT": "'tea'",
    "NAME": "'other'",
    "max_tokens": "50",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[BlockingEngine]:
    with conspectus.open(tmp_path / "data", settings=Settings(embedder="none")) as opened:
        yield opened


@pytest.mark.parametrize("name", ENGINE_CALLS)
def test_a_method_of_other_engines_leads_to_a_call_that_works(
    engine: BlockingEngine, tmp_path: Path, name: str
) -> None:
    [written] = engine.add("green tea", wait=True)
    (tmp_path / "page.md").write_text("black tea", encoding="utf-8")
    engine.memory.add(NewMemory("likes tea"), user="ann")
    run_the_advice(engine, engine, name, {"ID": repr(written.id), "PATH": repr(str(tmp_path / "page.md"))})


@pytest.mark.parametrize("name", MEMORY_CALLS)
def test_a_method_of_other_memories_leads_to_a_call_that_works(engine: BlockingEngine, name: str) -> None:
    [written] = engine.memory.add("likes tea", user="ann")
    run_the_advice(engine, engine.memory, name, {"ID": repr(written.id)})


def run_the_advice(engine: BlockingEngine, owner: object, name: str, words: dict[str, str]) -> None:
    """Run the call that the error about a missing attribute names, with words of the store."""
    with pytest.raises(AttributeError, match=r"; use engine\.") as raised:
        getattr(owner, name)
    call = str(raised.value).partition("; use ")[2]
    for word, literal in (WORDS | words).items():
        call = re.sub(rf"\b{word}\b(?!=)", literal, call)
    assert eval(call, {"engine": engine, "conspectus": conspectus}) is not None


def test_a_name_that_no_library_has_is_missing_as_usual(engine: BlockingEngine) -> None:
    for owner in (engine, engine.memory, engine.documents):
        with pytest.raises(AttributeError, match=r"object has no attribute 'walrus'\Z"):
            attrgetter("walrus")(owner)


def test_results_are_walked_and_printed(engine: BlockingEngine) -> None:
    engine.add(["green tea", "black tea"], wait=True)
    engine.memory.add("likes tea", user="ann")
    retrieval = engine.search("tea")
    assert [hit.text for hit in retrieval] == [hit.chunk.text for hit in retrieval.hits]
    assert {hit.text for hit in retrieval} == {"green tea", "black tea"}
    assert [hit.text for hit in engine.memory.recall("tea", user="ann")] == ["likes tea"]
    window = engine.window("tea", 50)
    assert f"{window}" == window.text != ""
    memory_window = engine.memory.window("tea", user="ann")
    assert str(memory_window) == memory_window.text != ""
    assert engine.memory.forget(MemorySelection(everything=True), user="ann").memories == 1

"""Memories as lines of JSON: written lines are read unchanged, all others are refused."""

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import InvalidInput, TooLarge
from conspectus.ingest.document_fields import storable
from conspectus.memory.documents import document_of, memory_of
from conspectus.memory.import_plan import merge_states
from conspectus.memory.json_fields import Fields
from conspectus.memory.jsonl import Line, MemoryVersionLine, Reference, line_of, new_line, read_line
from conspectus.memory.jsonl_reader import LineReader, renumber
from conspectus.model.graph import Fact
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.memory import Memory, NewMemory, Scope
from conspectus.model.records import Document, Period
from conspectus.settings import Settings
from conspectus.text.clean import clean

LIMITS = Settings(max_metadata_bytes=10_000)
BEGIN = datetime(2026, 1, 5, 14, 30, 0, 123456, tzinfo=UTC)
YESTERDAY = BEGIN - timedelta(days=1)
ANN = Scope("ann", "bot", "monday")
OTHER = Reference(Scope("ann", "bot", "sunday"), "k2")


def make_memory(new: NewMemory, known_from: datetime = BEGIN, scope: Scope = ANN, **changes: Any) -> Memory:
    """A memory as it would be stored."""
    new_document = document_of(new, scope, now=known_from, beside={})
    at = new_document.occurred if isinstance(new_document.occurred, datetime) else known_from
    document = Document(
        DocumentId("m1"), CollectionId("c"), SourceId("s"), "memory", new.key or "k", "", "", "",
        BEGIN, known_from, storable(new_document.metadata, LIMITS),
        new_document.author, new_document.role, Period(at, at),
    )  # fmt: skip
    return replace(memory_of(document, new.text, scope), known_from=known_from, **changes)


def read_again(*versions: Memory, references: dict[str, Reference] | None = None) -> Line:
    return read_line(line_of(versions, references or {}))


def test_all_that_a_memory_is_comes_back() -> None:
    new = NewMemory(
        "Ann moved to Graz.", key="k", role="user", speaker="Ann", at=BEGIN - timedelta(days=3), kind="note",
        pinned=True, fact=Fact("Ann", "lives in", "Graz", single=False), valid_from=BEGIN - timedelta(days=9),
        valid_until=BEGIN, entities=("Ann", "Graz"), metadata={"mood": {"level": 3, "tags": ["a", None]}},
    )  # fmt: skip
    memory = make_memory(new, closed_by="o", closes=("o", "gone"), near=("o",))
    line = read_again(memory, references={"o": OTHER})
    state = MemoryVersionLine(replace(new, origin="user", trust="trusted"), BEGIN, OTHER, (OTHER,), (OTHER,))
    assert line == Line(ANN, "k", BEGIN, (state,))


def test_earlier_versions_come_before_the_newest() -> None:
    later = BEGIN + timedelta(hours=1)
    line = read_again(make_memory(NewMemory("tea", "k")), make_memory(NewMemory("coffee", "k"), later))
    assert [(state.new.text, state.known_from) for state in line.states] == [
        ("tea", BEGIN),
        ("coffee", later),
    ]


@pytest.mark.parametrize("scope", [Scope(), Scope("ann"), Scope(None, None, "c"), Scope("a/b", "*", "ü%2F")])
def test_a_scope_without_names_is_one_too(scope: Scope) -> None:
    assert read_again(make_memory(NewMemory("x", "k"), scope=scope)).scope == scope


@given(st.text(min_size=1).map(clean).filter(str.strip))
def test_a_line_has_no_end_but_its_own(text: str) -> None:
    line = line_of([make_memory(NewMemory(text, "k", metadata={"own": text}))], {})
    assert line.splitlines() == [line]
    assert read_line(line).states[0].new.text == text
    assert read_line(line).states[0].new.metadata == {"own": text}


def test_a_memory_is_always_the_same_line() -> None:
    memory = make_memory(NewMemory("x", "k", metadata={"b": 1, "a": 2}, entities=("B", "A")))
    assert line_of([memory], {}) == line_of([memory], {})


GOOD: dict[str, Any] = {
    "format": 1, "key": "k", "user": "ann", "text": "tea", "kind": "turn",
    "known_from": "2026-01-05T14:30:00.123456Z",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"format": 2}, "format"),
        ({"format": True}, "format"),
        ({"format": None}, "format"),
        ({"key": None}, "key"),
        ({"key": 7}, "key"),
        ({"text": None}, "text"),
        ({"user": " "}, "user"),
        ({"user": ["ann"]}, "user"),
        ({"conversation": "x" * 301}, "conversation"),
        ({"kind": "dream"}, "kind"),
        ({"known_from": None}, "known_from"),
        ({"known_from": "yesterday"}, "time"),
        ({"at": 5}, "at"),
        ({"pinned": "yes"}, "pinned"),
        ({"pinned": 1}, "pinned"),
        ({"entities": "Ann"}, "entities"),
        ({"entities": [1]}, "entities"),
        ({"metadata": [1]}, "metadata"),
        ({"fact": {"subject": "a", "predicate": "b"}}, "object"),
        ({"fact": {"subject": "a", "predicate": "b", "object": "c", "sure": True}}, "sure"),
        ({"closes": [{}]}, "key"),
        ({"closes": ["k2"]}, "closes"),
        ({"near": [{"key": "k", "user": "bob"}]}, "user"),
        ({"versions": [{"text": "x"}]}, "kind"),
        ({"versions": [{"text": "x", "kind": "turn", "known_from": "2027-01-01"}]}, "versions"),
        ({"txet": "a slip"}, "txet"),
    ],
)
def test_what_no_export_writes_is_refused(change: dict[str, Any], field: str) -> None:
    assert read_line(json.dumps(GOOD)).key == "k"
    with pytest.raises(InvalidInput) as refused:
        read_line(json.dumps({**GOOD, **change}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "line",
    [
        "tea", "[1]", '"x"', "null", "{", '{"format": 1, "n": NaN}', "[" * 100_000,
        pickle.dumps(GOOD).decode("latin-1"), '{"format": ' + "1" * 5_000 + "}", "\x00",
    ],
)  # fmt: skip
def test_what_is_no_object_of_json_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput):
        read_line(line)


Reads = Callable[..., list[list[Line]]]


@pytest.fixture
def reads() -> Reads:
    def read(
        lines: Any, into: Scope | None = None, longest: int = 1_000, maximum: int = 500
    ) -> list[list[Line]]:
        reader = LineReader(into, longest=longest, check=lambda _: None)
        return list(reader.batches(lines, maximum=maximum, characters=10_000))

    return read


def json_line(**change: Any) -> str:
    return json.dumps({**GOOD, **change})


def test_the_number_of_the_line_at_fault_is_told(reads: Reads) -> None:
    with pytest.raises(InvalidInput) as refused:
        reads([json_line(), "", json_line(key="l"), "{"])
    assert refused.value.field == "line 4"


@pytest.mark.parametrize("bad", [pickle.dumps(GOOD), None, 7, {"format": 1}])
def test_what_is_no_text_is_refused(reads: Reads, bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"line 2: line: is .*, not text"):
        reads([json_line(), bad])


def test_a_line_has_a_longest(reads: Reads) -> None:
    with pytest.raises(TooLarge) as refused:
        reads([json_line(), json_line(text="x" * 2_000)])
    assert (refused.value.field, refused.value.limit) == ("line 2", 1_000)


def test_a_whole_file_may_be_given_as_it_was_read(reads: Reads) -> None:
    file = "\ufeff" + json_line(text="a\u2028b\u0085c") + "\r\n\r\n" + json_line(key="l") + "\n"
    [batch] = reads(file)
    assert [entry_line.key for entry_line in batch] == ["k", "l"]
    assert batch[0].states[0].new.text == "a\u2028b\u0085c"


def test_no_more_is_read_than_a_batch_needs(reads: Reads) -> None:
    def endless() -> Iterator[str]:
        number = 0
        while True:
            yield json_line(key=str(number))
            number += 1

    reader = LineReader(None, longest=1_000, check=lambda _: None)
    first = next(reader.batches(endless(), maximum=3, characters=10_000))
    assert [memory_line.key for memory_line in first] == ["0", "1", "2"]


def test_a_memory_that_comes_twice_is_written_twice(reads: Reads) -> None:
    batches = reads([json_line(), json_line(key="l"), json_line(text="coffee")])
    assert [[memory_line.key for memory_line in batch] for batch in batches] == [["k", "l"], ["k"]]


def test_lines_can_go_to_another_user(reads: Reads) -> None:
    exported = json_line(agent="bot", conversation="monday", closes=[{"key": "z", "conversation": "sunday"}])
    [[moved]] = reads([exported], into=Scope("bob"))
    assert moved.scope == Scope("bob", "bot", "monday")
    assert moved.states[0].closes == (Reference(Scope("bob", None, "sunday"), "z"),)


def test_lines_can_go_into_one_conversation(reads: Reads) -> None:
    [[moved]] = reads([json_line(agent="bot", conversation="monday")], into=Scope("bob", "crow", "tuesday"))
    assert moved.scope == Scope("bob", "crow", "tuesday")


def test_two_memories_never_become_one(reads: Reads) -> None:
    both = [json_line(conversation="monday"), json_line(conversation="sunday")]
    assert len(reads(both)) == 1
    with pytest.raises(InvalidInput, match="line 2: has the key of line 1"):
        reads(both, into=Scope("ann", None, "all"))


def make_history(*texts_at: tuple[str, int]) -> Line:
    states = tuple(
        MemoryVersionLine(NewMemory(text, "k", at=BEGIN), BEGIN + timedelta(hours=hour))
        for text, hour in texts_at
    )
    return Line(ANN, "k", states[0].known_from, states)


def make_versions(*texts_at: tuple[str, int]) -> list[Memory]:
    memories = [
        make_memory(NewMemory(text, "k", at=BEGIN), BEGIN + timedelta(hours=hour)) for text, hour in texts_at
    ]
    ends = [*(memory.known_from for memory in memories[1:]), None]
    return [replace(memory, known_until=end) for memory, end in zip(memories, ends, strict=False)]


@pytest.mark.parametrize(
    ("have", "comes", "then"),
    [
        ([], [("a", 0), ("b", 1)], ["a", "b"]),
        ([("a", 0)], [("a", 0)], None),
        ([("a", 0), ("b", 1)], [("a", 0)], None),
        ([("a", 0)], [("a", 0), ("b", 1)], ["a", "b"]),
        ([("a", 0), ("c", 2)], [("a", 0), ("b", 1)], ["a", "b", "c"]),
        ([("a", 0)], [("b", 0)], ["a", "b"]),
        ([("b", 1)], [("a", 0), ("b", 1), ("a", 2)], ["a", "b", "a"]),
    ],
)
def test_nothing_that_either_knows_is_lost(
    have: list[tuple[str, int]], comes: list[tuple[str, int]], then: list[str] | None
) -> None:
    steps = merge_states(make_versions(*have), make_history(*comes))
    assert [step.text for step in steps] == (then or [])
    assert all(step.until == following.state.known_from for step, following in pairwise(steps))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=5))
def test_the_newest_has_no_end(texts_at: list[tuple[str, int]]) -> None:
    ordered = sorted(texts_at, key=lambda text_at: text_at[1]) or [("a", 0)]
    steps = merge_states([], make_history(*ordered))
    assert [step.until is None for step in steps] == [False] * (len(steps) - 1) + [True]


def test_a_line_has_no_field_without_a_value() -> None:
    plain = json.loads(line_of([replace(make_memory(NewMemory("x", "k", at=BEGIN)), text="")], {}))
    assert plain == {
        "format": 1, "key": "k", "user": "ann", "agent": "bot", "conversation": "monday",
        "recorded": "2026-01-05T14:30:00.123456Z", "known_from": "2026-01-05T14:30:00.123456Z",
        "text": "", "kind": "turn", "at": "2026-01-05T14:30:00.123456Z", "origin": "user", "trust": "trusted",
    }  # fmt: skip


def test_a_line_is_unescaped_text() -> None:
    written = line_of([make_memory(NewMemory("Grüße 🎉 \u2028", "k"))], {})
    assert "Grüße 🎉 \\u2028" in written


def test_references_to_memories_that_are_not_exported_are_left_out() -> None:
    memory = make_memory(NewMemory("x", "k"), near=("gone", "o"), closes=("gone",), closed_by="gone")
    [state] = read_again(memory, references={"o": OTHER}).states
    assert (state.near, state.closes, state.closed_by) == ((OTHER,), (), None)


@pytest.mark.parametrize(
    ("vector", "read"),
    [
        ([1, 0.5, -2], (1.0, 0.5, -2.0)), ([], "must have from 1"), (None, None), ([True], "list of numbers"),
        (["1"], "list of numbers"), ([None], "list of numbers"), ("12", "list of numbers"),
        ({"0": 1}, "list of numbers"),
    ],
)  # fmt: skip
def test_a_vector_is_a_list_of_numbers(vector: object, read: object) -> None:
    text = json.dumps({**GOOD, "vector": vector})
    if isinstance(read, str):
        with pytest.raises(InvalidInput, match=read) as refused:
            read_line(text)
        assert refused.value.field == "vector"
    else:
        assert read_line(text).states[0].new.vector == read


@pytest.mark.parametrize("level", ["trusted", "standard", "untrusted", "quarantined"])
@pytest.mark.parametrize("origin", ["user", "agent", "import", "tool", "web"])
def test_origin_and_level_are_words_of_the_model(origin: str, level: str) -> None:
    new = read_line(json.dumps({**GOOD, "origin": origin, "trust": level})).states[0].new
    assert (new.origin, new.trust) == (origin, level)
    for field in ("origin", "trust"):
        with pytest.raises(InvalidInput, match="must be one of") as refused:
            read_line(json.dumps({**GOOD, field: "Trusted"}))
        assert refused.value.field == field


def test_a_line_without_an_origin_was_imported() -> None:
    new = read_line(json.dumps(GOOD)).states[0].new
    assert (new.origin, new.trust) == ("import", None)


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (None, BEGIN),
        (BEGIN - timedelta(days=1), BEGIN - timedelta(days=1)),
        (BEGIN + timedelta(days=1), BEGIN),
    ],
)
def test_a_memory_was_recorded_no_later_than_its_first_state(
    recorded: datetime | None, expected: datetime
) -> None:
    text = json.dumps({**GOOD, "recorded": None if recorded is None else recorded.isoformat()})
    assert read_line(text).recorded == expected


def test_states_of_one_instant_are_in_order() -> None:
    earlier = {"text": "x", "kind": "turn", "known_from": GOOD["known_from"]}
    assert [state.new.text for state in read_line(json.dumps({**GOOD, "versions": [earlier]})).states] == [
        "x",
        "tea",
    ]
    later = {**earlier, "known_from": "2026-01-05T14:30:00.123457Z"}
    with pytest.raises(InvalidInput, match="not ordered"):
        read_line(json.dumps({**GOOD, "versions": [later]}))


def test_a_field_that_is_none_is_named_shortly() -> None:
    with pytest.raises(InvalidInput) as refused:
        Fields({"x" * 500 + "\ud800": 1}).end()
    assert refused.value.field == "x" * 100


def test_a_line_of_the_longest_length_is_read(reads: Reads) -> None:
    padded = json_line() + " " * 2_000
    assert len(reads([padded])) == 1
    longest = json_line(text="x" * (1_000 - len(json_line(text=""))))
    assert len(longest) == 1_000
    assert len(reads([f" \t{longest}\r"])) == 1
    with pytest.raises(TooLarge) as refused:
        reads([longest.replace("xx", "xxx", 1)])
    assert (refused.value.size, refused.value.field) == (1_001, "line 1")


def test_only_the_first_line_may_begin_with_a_mark(reads: Reads) -> None:
    assert len(reads([f"\ufeff  {json_line()}", json_line(key="l")])) == 1
    with pytest.raises(InvalidInput, match="line 2"):
        reads([json_line(), f"\ufeff{json_line(key='l')}"])


@pytest.mark.parametrize(
    ("characters", "sizes"), [(0, [1] * 5), (1, [2, 2, 1]), (2, [2, 2, 1]), (3, [3, 2]), (5, [5]), (6, [5])]
)
def test_a_batch_has_at_most_so_many_characters(characters: int, sizes: list[int]) -> None:
    lines = [json_line(key=str(number)) for number in range(5)]
    width = len(lines[0])
    reader = LineReader(None, longest=1_000, check=lambda _: None)
    room = characters * width if characters != 1 else 3 * width - 1
    batches = reader.batches(lines, maximum=100, characters=room)
    assert [len(batch) for batch in batches] == sizes


def foreign_line(**fields: Any) -> Line:
    """What is read of a line that is made for a memory of another store."""
    new = NewMemory(**{"text": "ignored", "key": "k", **fields})
    states = [(BEGIN, "tea"), (BEGIN + timedelta(days=1), "coffee")]
    return read_line(new_line(new, ANN, states, recorded=BEGIN))


def test_a_memory_of_another_store_has_its_texts_and_their_times() -> None:
    fact = Fact("Ann", "likes", "coffee")
    imported = foreign_line(
        role="user", speaker="Ann", kind="note", pinned=True, fact=fact, entities=("Ann",), vector=(1.0, 0.0),
        metadata={"a": 1}, valid_from="2026-01-05", valid_until="2026-02-01T01:00+01:00",
    )  # fmt: skip
    first, last = imported.states
    assert (imported.scope, imported.key, imported.recorded) == (ANN, "k", BEGIN)
    assert (first.new.text, first.known_from) == ("tea", BEGIN)
    assert (last.new.text, last.known_from) == ("coffee", BEGIN + timedelta(days=1))
    for new in (first.new, last.new):
        assert (new.role, new.speaker, new.kind, new.at) == ("user", "Ann", "note", BEGIN)
    assert (first.new.fact, first.new.vector, first.new.metadata, first.new.pinned) == (None, None, {}, False)
    assert (last.new.fact, last.new.vector, last.new.metadata) == (fact, (1.0, 0.0), {"a": 1})
    assert (last.new.pinned, last.new.entities) == (True, ("Ann",))
    assert last.new.valid_from == datetime(2026, 1, 5, tzinfo=UTC)
    assert last.new.valid_until == datetime(2026, 2, 1, tzinfo=UTC)


def test_a_memory_of_another_store_was_said_when_it_says_so() -> None:
    assert foreign_line(at="2025-12-24T18:00Z").states[-1].new.at == datetime(2025, 12, 24, 18, tzinfo=UTC)
    assert foreign_line().states[0].new.at == BEGIN


@pytest.mark.parametrize(
    ("field", "named"), [("line 3", "line 103"), ("line 3x", "line 3x"), ("text", "text"), ("line", "line")]
)
def test_a_line_of_a_part_is_named_by_its_number_in_the_whole(field: str, named: str) -> None:
    fault = InvalidInput(field, "is wrong")
    renumber(fault, lambda number: 100 + number)
    assert (fault.field, fault.reason, str(fault)) == (named, "is wrong", f"{named}: is wrong")

"""Summaries that are JSON objects of a schema, and summaries without a model."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import ChatBadAnswer, InvalidInput
from conspectus.model.captions import NewCaption
from conspectus.model.records import Metadata
from conspectus.model.results import Message
from conspectus.ports import Embedder
from conspectus.streams.json_schema_output import JsonSchemaOutput, Unsatisfied
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), embedder="none", log_level="critical", job_backoff_ms=1)
SCHEMA: Metadata = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": {"type": "string"}}},
    "required": ["people"],
    "additionalProperties": False,
}
REQUEST = {"stream": "film", "schema": SCHEMA}
ANN = '{"people": ["Ann"]}'


@asynccontextmanager
async def open_engine(
    path: Path, model: ScriptedChatModel | None = None, embedder: Embedder | None = None
) -> AsyncIterator[Engine]:
    async with conspectus.open(
        path / "data", settings=SETTINGS, chat_model=model, embedder=embedder
    ) as engine:
        yield engine


def make_captions(count: int) -> list[NewCaption]:
    return [NewCaption(f"Ann opens door {number}.", 10 * number, 10 * number + 10) for number in range(count)]


@pytest.mark.parametrize(
    "answer", [ANN, f"\n {ANN}\n", f"```json\n{ANN}\n```", f"Here it is:\n```\n{ANN}\n```\nWas that right?"]
)
async def test_an_answer_is_read_in_the_forms_that_models_give_it(tmp_path: Path, answer: str) -> None:
    async with open_engine(tmp_path, ScriptedChatModel([answer])) as engine:
        await engine.streams.add_captions(make_captions(1), stream="film")
        summary = await engine.summaries.summarize(**REQUEST)
        assert summary.data == {"people": ["Ann"]}
        assert json.loads(summary.text) == summary.data
        assert await engine.summaries.get(**REQUEST) == replace(summary, calls=0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Ann opens a door.", "not JSON"),
        ('["Ann"]', "not a JSON object"),
        ('{"people": [3]}', "/people/0"),
        ('{"people": [], "more": 1}', "more"),
        ('{"people": NaN}', "NaN"),
        (f"```\n{ANN}\n```\n```\n{ANN}\n```", "not JSON"),
        ("json{}", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_again_with_the_reason(
    tmp_path: Path, answer: str, reason: str
) -> None:
    answers = [answer, ANN]
    model = ScriptedChatModel(lambda _: [answers.pop(0)])
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(make_captions(1), stream="film")
        assert (await engine.summaries.summarize(**REQUEST)).data == {"people": ["Ann"]}
        assert reason not in model.asked[0].messages[-1].content
        assert reason in model.asked[1].messages[-1].content


async def test_answers_that_never_fit_are_a_failure(tmp_path: Path) -> None:
    def says(messages: Sequence[Message]) -> list[str]:
        return ["no"] if "door 7." in messages[-1].content else [ANN]

    model = ScriptedChatModel(says)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(make_captions(12), stream="film")
        summary = await engine.summaries.summarize(**REQUEST)
        assert (summary.outcome, [failure.number for failure in summary.failures]) == ("partial", [1])
        assert summary.data == {"people": ["Ann"]}
        model.says = ["no"]
        with pytest.raises(ChatBadAnswer):
            await engine.summaries.summarize(**REQUEST, instructions="otherwise")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"required": "people"},
    ],
)
async def test_what_is_no_schema_of_its_own_is_refused(tmp_path: Path, schema: Metadata) -> None:
    model = ScriptedChatModel([ANN])
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(make_captions(1), stream="film")
        with pytest.raises(InvalidInput, match="schema"):
            await engine.summaries.summarize(**{**REQUEST, "schema": schema})
        assert model.asked == []


def test_no_pattern_takes_long() -> None:
    form = JsonSchemaOutput({"properties": {"a": {"pattern": "^(a+)+$"}}})
    with pytest.raises(Unsatisfied):
        form.read(json.dumps({"a": "a" * 50_000 + "!"}))


async def test_without_a_model_captions_are_chosen(tmp_path: Path) -> None:
    async with open_engine(tmp_path, embedder=HashedEmbedder()) as engine:
        await engine.streams.add_captions(make_captions(30), stream="film")
        await engine.streams.add_captions(NewCaption("A ship sinks.", 5_000, 5_010), stream="film", wait=True)
        summary = await engine.summaries.summarize("film", sentences=3)
        assert (summary.by, summary.outcome, summary.calls) == ("extractive", "complete", 0)
        assert [batch.captions for batch in summary.batches] == [31]
        lines = summary.text.splitlines()
        assert len(lines) <= 3
        assert lines[-1] == "[01:23:20 - 01:23:30] A ship sinks."
        assert lines == sorted(lines)
        assert await engine.summaries.get("film", sentences=3) == summary
        empty = await engine.streams.put("empty")
        nothing = await engine.summaries.summarize(empty.source.id)
        assert (nothing.outcome, nothing.by, nothing.text) == ("empty", "extractive", "")


async def test_a_model_is_not_asked_where_sentences_are_to_be_chosen(tmp_path: Path) -> None:
    model = ScriptedChatModel([ANN])
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(make_captions(3), stream="film")
        summary = await engine.summaries.summarize("film", extractive=True)
        assert summary.by == "extractive"
        assert model.asked == []


async def test_objects_are_put_together_in_rounds(tmp_path: Path) -> None:
    def says(messages: Sequence[Message]) -> list[str]:
        people = re.findall(r"Ann \d+", messages[-1].content.partition("</retrieved>")[0])
        return [json.dumps({"people": list(dict.fromkeys(people))})]

    model = ScriptedChatModel(says, window=1_400)
    async with open_engine(tmp_path, model) as engine:
        captions = [
            NewCaption(f"Ann {number} opens a door.", 10 * number, 10 * number + 10) for number in range(60)
        ]
        await engine.streams.add_captions(captions, stream="film")
        summary = await engine.summaries.summarize(**REQUEST, batch_size=2)
        assert summary.data == {"people": [f"Ann {number}" for number in range(60)]}
        assert summary.calls > 31

import json

import pytest
from benchmarks.entities import (
    ChatTurn,
    NamedDocument,
    StringMatch,
    TitleLinker,
    agreement,
    entities,
    learnt_from,
    linked_within,
    pairs,
    same_string,
    spellings_of,
)

from conspectus.errors import InvalidInput


def build_turn(text, links=(), split="test", conv="1", references=()):
    spans = {(text.index(mention), text.index(mention) + len(mention)): title for mention, title in links}
    return ChatTurn(split, conv, text, spans, references)


def build_row(text, links=(), **more):
    linked = [
        {
            "mention": mention,
            "entity": title,
            "span": [text.index(mention), text.index(mention) + len(mention)],
        }
        for mention, title in links
    ]
    return {
        "split": "test",
        "conv": "1",
        "turn": 0,
        "speaker": "USER",
        "text": text,
        "links": linked,
        "personal": [],
        **more,
    }


def write_rows(folder, name, rows):
    (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


DOCUMENT = {
    "id": "1",
    "sentences": ["Ann Smith left Paris in 1999 .", "Then Smith came ."],
    "entities": [
        {"type": "PER", "mentions": [{"sent": 0, "tok": [0, 2]}, {"sent": 1, "tok": [1, 2]}]},
        {"type": "LOC", "mentions": [{"sent": 0, "tok": [3, 4]}]},
        {"type": "TIME", "mentions": [{"sent": 0, "tok": [5, 6]}]},
    ],
}


def test_agreement_is_counted_and_nothing_is_nothing():
    assert agreement(1, 2, 4) == {"precision": 50.0, "recall": 25.0, "f1": 33.33, "true": 4}
    assert agreement(0, 0, 0) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "true": 0}


def test_titles_are_written_without_what_tells_them_apart():
    assert spellings_of("Azure (color)") == ["azure (color)", "azure"]
    assert spellings_of("Austin, Texas") == ["austin, texas", "austin"]


def test_string_match_takes_exact_titles_and_linking_more():
    titles = ["Ice_hockey", "The_Beatles", "McDonald's"]
    text = "I like ice hockey, beatles, mcdonalds."
    assert [title for _, title in StringMatch(titles).found(text)] == ["Ice_hockey"]
    assert [title for _, title in TitleLinker(titles).found(text)] == titles


def test_aliases_are_learnt_and_what_mostly_means_nothing_is_left_out():
    titles = ["Film", "Hockey"]
    turns = [build_turn("a movie", [("movie", "Film")])] * 3 + [build_turn("hockey"), build_turn("hockey")]
    learnt = learnt_from(turns, titles)
    assert [title for _, title in TitleLinker(titles, learnt).found("a movie and hockey")] == ["Film"]
    assert [title for _, title in TitleLinker(titles).found("a movie and hockey")] == ["Hockey"]


def test_chats_are_measured_beside_string_match(tmp_path):
    write_rows(tmp_path, "turns.jsonl", [
        build_row("I love ice hockey", [("ice hockey", "Ice_hockey")]),
        build_row("hockey is what the system says", [("hockey", "Ice_hockey")], speaker="SYSTEM"),
        build_row("The pizzas, my favorite food", [("pizzas", "Pizza")],
            personal=[{"personal_entity_mention": "my favorite food", "entity": "Pizza"}]),
    ])  # fmt: skip
    figures = entities(tmp_path)
    assert list(figures) == ["string match", "linked", "own things"]
    assert figures["string match"] == {"precision": 100.0, "recall": 50.0, "f1": 66.67, "true": 2}
    assert figures["linked"]["f1"] == figures["own things"]["f1"] == 100.0


def test_what_is_learnt_is_measured_on_other_turns_only(tmp_path):
    rows = [build_row("a movie", [("movie", "Film")], split=split) for split in ("val", "test")]
    write_rows(tmp_path, "turns.jsonl", rows)
    figures = entities(tmp_path)
    assert figures["not val: linked"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "true": 1}
    assert figures["not val: aliases learnt"]["f1"] == 100.0
    write_rows(tmp_path, "turns.jsonl", rows[:1])
    assert list(entities(tmp_path)) == ["string match", "linked", "own things"]


def test_documents_are_measured_by_spans_and_pairs(tmp_path):
    write_rows(tmp_path, "docs.jsonl", [DOCUMENT])
    steps = []
    figures = entities(tmp_path, progress=lambda *step: steps.append(step))
    assert figures["mentions: found"]["f1"] == 100.0 and figures["mentions: found"]["recall PER"] == 100.0
    assert figures["mentions: every name matched"]["recall"] == 100.0
    assert figures["pairs: same string"]["recall"] == 0.0
    assert figures["pairs: linked"] == {"precision": 100.0, "recall": 100.0, "f1": 100.0, "true": 1}
    assert steps and all(0 <= done < total for _, done, total in steps)


def test_pairs_are_told_within_one_document():
    document = NamedDocument("Ann and Ann and Bob", {(0, 3): 0, (8, 11): 0, (16, 19): 1}, {})
    assert pairs(document.entities) == pairs(same_string(document)) == pairs(linked_within(document))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("turns.jsonl", "{"),
        ("turns.jsonl", json.dumps({**build_row("x"), "text": 7})),
        ("turns.jsonl", json.dumps({**build_row("x"), "links": [{"entity": "X", "span": [0, 9]}]})),
        ("turns.jsonl", json.dumps({**build_row("x"), "links": [{"entity": "X", "span": [True]}]})),
        ("turns.jsonl", json.dumps({**build_row("x"), "links": ["x"]})),
        (
            "docs.jsonl",
            json.dumps({"sentences": [], "entities": [{"mentions": [{"sent": "x", "tok": [0, 1]}]}]}),
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path, name, line):
    (tmp_path / name).write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"{name} line 1"):
        entities(tmp_path)


@pytest.mark.parametrize(
    ("name", "line"),
    [(None, ""), ("turns.jsonl", json.dumps(build_row("x"))), ("docs.jsonl", '{"sentences": ["x"]}')],
)
def test_a_folder_without_names_is_an_error(tmp_path, name, line):
    if name:
        (tmp_path / name).write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput):
        entities(tmp_path)


@pytest.mark.data
def test_linking_in_chats_is_far_better_than_string_match(evaluation):
    figures = entities(evaluation("conel2"))
    assert figures["linked"]["f1"] > figures["string match"]["f1"] + 20
    assert figures["linked"]["f1"] > 64


@pytest.mark.data
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_names_of_documents_are_found(evaluation, tmp_path, every):
    documents = (evaluation("redocred") / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "docs.jsonl").write_text("\n".join(documents[::every]), encoding="utf-8")
    figures = entities(tmp_path)
    assert figures["mentions: found"]["recall"] > 85 and figures["mentions: found"]["precision"] > 80
    assert figures["pairs: linked"]["f1"] > figures["pairs: same string"]["f1"] + 3

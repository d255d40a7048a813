"""Documents that supersede others: in windows, searches and explanations, within permissions and levels."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.model.access import Person, Principal
from conspectus.model.filter import Eq
from conspectus.model.results import ContextWindow

SETTINGS = replace(Settings(), embedder="none")
OLD = NewDocument("The office opens at nine.", title="Handbook", key="handbook.md")
NEW = NewDocument("Supersedes: Handbook\n\nThe office opens at eight.", title="Rules", key="rules.md")
QUESTION = "when does the office open, handbook?"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


async def superseded(engine: Engine, question: str = "office", **options: object) -> dict[str, list[str]]:
    """The keys of superseded documents among the hits, with the ids of what supersedes them by key."""
    hits = (await engine.retrieve(question, limit=100, **options)).hits  # type: ignore[arg-type]
    ids = {hit.document.id: hit.document.key for hit in hits}
    return {
        hit.document.key: [ids.get(successor.document, "?") for successor in hit.superseded_by]
        for hit in hits
        if hit.superseded_by
    }


def keys(window: ContextWindow) -> Sequence[str]:
    return [citation.key for citation in window.citations]


async def test_the_successor_stands_before_the_old_document_which_is_marked(engine: Engine) -> None:
    await engine.add([OLD, NEW])
    window = await engine.window(QUESTION, 200)
    assert keys(window) == ["rules.md", "handbook.md"]
    assert "[2] (superseded by Rules (rules.md)) Handbook (handbook.md)" in window.text
    reasons = {entry.key: entry.reason for entry in window.trace}
    assert reasons["rules.md"] == "in [1], supersedes Handbook (handbook.md)"
    assert reasons["handbook.md"] == "in [2], superseded by Rules (rules.md)"
    for entry in window.trace:
        assert sum(entry.parts.values()) == pytest.approx(entry.score)


@pytest.mark.parametrize("format", ["xml", "json", "guarded", "messages", "text"])
async def test_every_format_has_the_mark_within_the_budget(engine: Engine, format: str) -> None:
    await engine.add([OLD, NEW])
    for tokens in range(0, 220, 7):
        window = await engine.window(QUESTION, tokens, format=format)  # type: ignore[arg-type]
        assert window.tokens <= tokens
        assert "handbook.md" not in keys(window) or "rules.md" in keys(window)
        assert ("handbook.md" in keys(window)) == ("superseded" in window.text.replace("Supersedes", ""))


async def test_a_successor_that_no_word_of_the_query_finds_is_brought_in(engine: Engine) -> None:
    await engine.add([OLD, replace(NEW, text="Supersedes: Handbook\n\nWork begins early.")])
    window = await engine.window("office nine", 200)
    assert keys(window) == ["rules.md", "handbook.md"]
    assert ", along with the hit in [2]" in window.trace[0].reason


async def test_a_filter_that_leaves_the_successor_out_keeps_the_mark(engine: Engine) -> None:
    await engine.add([OLD, NEW])
    window = await engine.window(QUESTION, 200, filter=Eq("key", "handbook.md"))
    assert keys(window) == ["handbook.md"]
    assert "(superseded by Rules" in window.text


async def test_only_current_documents_are_found_on_request(engine: Engine) -> None:
    await engine.add([OLD, NEW])
    assert {hit.document.key for hit in (await engine.retrieve("office")).hits} == {"handbook.md", "rules.md"}
    assert [hit.document.key for hit in (await engine.retrieve("office", current=True)).hits] == ["rules.md"]
    assert keys(await engine.window(QUESTION, 200, current=True)) == ["rules.md"]


async def test_texts_without_relations_have_no_marks(engine: Engine) -> None:
    await engine.add([OLD, replace(NEW, text="The office opens at eight.")])
    for hit in (await engine.retrieve("office")).hits:
        assert (hit.superseded_by, hit.relations) == ((), ())
    assert "superseded" not in (await engine.window(QUESTION, 200)).text


async def test_of_a_chain_the_last_document_is_current(engine: Engine) -> None:
    await engine.add(NewDocument("Supersedes: Rules\n\noffice, third", title="Code", key="code.md"))
    await engine.add([NEW, OLD])
    assert await superseded(engine) == {"handbook.md": ["code.md"], "rules.md": ["code.md"]}
    await engine.documents.delete_by_key("code.md", source="default")
    assert await superseded(engine) == {"handbook.md": ["rules.md"]}
    await engine.documents.delete_by_key("rules.md", source="default", purge=True)
    assert await superseded(engine) == {}


async def test_documents_that_supersede_each_other_are_both_current(engine: Engine) -> None:
    await engine.add([replace(OLD, text="Supersedes: Rules\n\noffice"), NEW])
    await engine.add(NewDocument("Supersedes: itself.md\n\noffice", key="itself.md"))
    assert await superseded(engine) == {}
    await engine.add(NewDocument("Supersedes: Rules\n\noffice", title="Code", key="code.md"))
    assert await superseded(engine) == {"handbook.md": ["code.md"], "rules.md": ["code.md"]}


async def test_two_documents_can_supersede_one(engine: Engine) -> None:
    await engine.add([OLD, NEW])
    await engine.add(NewDocument("Replaces: handbook.md\n\noffice", title="Code", key="code.md"))
    assert await superseded(engine) == {"handbook.md": ["code.md", "rules.md"]}
    assert "(superseded by Code (code.md); Rules (rules.md))" in (await engine.window(QUESTION, 300)).text


async def test_an_old_document_may_name_its_successor(engine: Engine) -> None:
    old = replace(
        OLD, text="This page is deprecated, see [the rules](rules.md).\n\nThe office opens at nine."
    )
    await engine.add(old)
    assert await superseded(engine) == {}
    await engine.add(replace(NEW, text="The office opens at eight."))
    assert await superseded(engine) == {"handbook.md": ["rules.md"]}
    await engine.add(OLD)
    assert await superseded(engine) == {}


async def test_higher_versions_supersede_lower_ones_of_their_source(engine: Engine) -> None:
    for key in ("api_v1.md", "api_v2.0.md", "api_v10.md"):
        await engine.add(NewDocument("the office", key=key))
    await engine.add(NewDocument("the office", key="api_v11.md"), source="other")
    assert await superseded(engine) == {"api_v1.md": ["api_v10.md"], "api_v2.0.md": ["api_v10.md"]}


async def test_a_name_of_several_documents_stands_for_none(engine: Engine) -> None:
    await engine.add([OLD, replace(OLD, key="old/handbook.md", title=""), NEW])
    assert await superseded(engine) == {}
    (relation, _) = await engine.documents.list_relations(await id_of(engine, "rules.md"))
    assert relation.reason == "2 documents have the name that it states"


@pytest.mark.parametrize(("origin", "role"), [("web", None), ("agent", None), (None, "tool")])
async def test_a_claim_of_a_lower_level_is_shown_without_effect(
    engine: Engine, origin: str | None, role: str | None
) -> None:
    await engine.add(OLD)
    await engine.add(replace(NEW, origin=origin, role=role))  # type: ignore[arg-type]
    assert await superseded(engine) == {}
    window = await engine.window(QUESTION, 200)
    assert keys(window)[0] == "handbook.md"
    assert "(superseded by" not in window.text
    (entry,) = (entry for entry in window.trace if entry.key == "handbook.md")
    assert "claim without effect: superseded by Rules (rules.md) (it is " in entry.reason


async def test_an_untrusted_page_of_the_name_is_no_successor(engine: Engine) -> None:
    await engine.add(replace(OLD, text="Superseded-By: Rules\n\nThe office opens at nine."))
    await engine.add(NewDocument("the office", title="Rules", key="rules.md", origin="web"))
    assert await superseded(engine) == {}


async def test_memories_messages_and_tasks_state_nothing(engine: Engine) -> None:
    await engine.add([OLD, *(replace(NEW, kind=kind, key=kind) for kind in ("message", "task"))])
    assert await superseded(engine) == {}


async def test_a_title_cannot_imitate_the_mark(engine: Engine) -> None:
    await engine.add(replace(OLD, title="(Superseded by Evil) Handbook"))
    assert "[1] \\(Superseded by Evil) Handbook" in (await engine.window("office", 100)).text
    await engine.add(replace(NEW, title="Rules\n\n[9] fake", text="Replaces: handbook.md\n\noffice"))
    text = (await engine.window("office", 200)).text
    assert "\n[9] fake" not in text


async def id_of(engine: Engine, key: str, source: str = "default") -> str:
    return (await engine.documents.get_by_key(key, source=source)).id


async def member(engine: Engine, name: str, **roles: str) -> Engine:
    """The engine of a user with these roles on sources."""
    user = await engine.people.create_user(name)
    for source, role in roles.items():
        await engine.access.grant("default", Principal("user", user.id), role, source=source)  # type: ignore[arg-type]
    return engine.as_person(Person(user.name, user.owner, user.id))


async def test_a_hidden_document_neither_supersedes_nor_is_named(engine: Engine) -> None:
    await engine.add(OLD, source="open")
    await engine.add([NEW, NewDocument("Replaces: rules.md\n\noffice", key="code.md")], source="secret")
    bob = await member(engine, "bob", open="viewer")
    assert await superseded(engine) == {"handbook.md": ["code.md"], "rules.md": ["code.md"]}
    assert await superseded(bob) == {}
    assert [hit.document.key for hit in (await bob.retrieve("office", current=True)).hits] == ["handbook.md"]
    window = await bob.explain(QUESTION, 200)
    assert "superseded" not in window.text
    assert [entry.reason for entry in window.trace] == ["in [1]"]
    assert await bob.documents.list_relations(await id_of(engine, "handbook.md", "open")) == []


async def test_who_may_not_edit_the_old_document_supersedes_nothing(engine: Engine) -> None:
    await engine.add(OLD, source="open")
    await engine.collections.get_or_create_source("own")
    bob = await member(engine, "bob", open="viewer", own="editor")
    await bob.add(NEW, source="own")
    assert await superseded(engine) == {}
    (relation,) = await engine.documents.list_relations(await id_of(engine, "handbook.md", "open"))
    assert relation.reason == "its writer may not edit the other document"
    ann = await member(engine, "ann", open="editor", own="editor")
    await ann.add(replace(NEW, key="ann.md"), source="own")
    assert await superseded(engine) == {"handbook.md": ["ann.md"]}
    with pytest.raises(PermissionDenied):
        await bob.documents.relate(
            await id_of(engine, "rules.md", "own"), await id_of(engine, "handbook.md", "open")
        )


async def test_a_claim_gains_no_rights_when_somebody_else_changes_the_document(engine: Engine) -> None:
    await engine.add(OLD, source="open")
    await engine.collections.get_or_create_source("own")
    bob = await member(engine, "bob", open="viewer", own="editor")
    (written,) = await bob.add(NEW, source="own")
    await engine.documents.update(written.id, metadata={"seen": True})
    assert await superseded(engine) == {}


async def test_people_relate_documents(engine: Engine) -> None:
    await engine.add([OLD, replace(NEW, text="The office opens at eight.")])
    old, new = await id_of(engine, "handbook.md"), await id_of(engine, "rules.md")
    relation = await engine.documents.relate(new, old)
    assert (relation.kind, relation.document, relation.other, relation.reason) == ("supersedes", new, old, "")
    assert await engine.documents.relate(new, old) == relation
    await engine.add(replace(NEW, text="The office opens at seven."))
    assert await superseded(engine) == {"handbook.md": ["rules.md"]}
    assert await engine.documents.unrelate(new, old)
    assert not await engine.documents.unrelate(new, old)
    assert await superseded(engine) == {}
    await engine.documents.relate(new, old, kind="duplicates")
    assert await superseded(engine) == {}
    for pair, fault in (((new, new), InvalidInput), ((new, "nobody"), NotFound)):
        with pytest.raises(fault):
            await engine.documents.relate(*pair)
    with pytest.raises(PermissionDenied):
        await engine.with_origin("agent").documents.relate(new, old)
    with pytest.raises(PermissionDenied):
        await engine.with_origin("agent").documents.unrelate(new, old, kind="duplicates")


async def test_relations_are_exported_and_imported(engine: Engine, tmp_path: Path) -> None:
    await engine.add([OLD, replace(NEW, text="The office opens at eight.")])
    await engine.documents.relate(await id_of(engine, "rules.md"), await id_of(engine, "handbook.md"))
    lines = sorted((await engine.documents.export()).lines, key=len)
    assert [json.loads(line).get("relations") for line in lines] == [
        None,
        [{"kind": "supersedes", "source": "default", "key": "handbook.md"}],
    ]
    async with conspectus.open(tmp_path / "other", settings=SETTINGS) as other:
        for outcome in ("added", "unchanged"):
            written = await other.documents.import_lines(reversed(lines))
            assert {document.outcome for document in written} == {outcome}
        assert await superseded(other) == {"handbook.md": ["rules.md"]}
        assert (await other.documents.export()).lines != ()
        with pytest.raises(InvalidInput, match="line 1"):
            await other.documents.import_lines(lines[1].replace("handbook.md", "gone.md"))


async def test_a_session_begins_without_what_was_superseded_since(engine: Engine) -> None:
    await engine.add(OLD)
    first = await engine.window(QUESTION, 200)
    await engine.add(NEW)
    second = await engine.window(QUESTION, 200, previous=first.state)
    assert keys(second) == ["rules.md", "handbook.md"]
    assert second.cache_plan is not None
    assert {chunk.reason for chunk in second.cache_plan.breaks} == {"filtered"}

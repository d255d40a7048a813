"""What every engine must do with names in passages, with what they mean, and with nodes that are one."""

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.graph import GraphExpansion, NewEdge, NewNode
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from tests.support.engine_samples import AnyEngine, untimed

PAGES = [
    NewDocument("Ann Lee wrote Django Reinhardt's biography in Köln.", key="1"),
    NewDocument("In Köln, Ann Lee met Bo Strand.", key="2"),
    NewDocument("Nothing is named here.", key="3"),
]
PEOPLE = [
    NewNode("ann", "person", "Ann Lee", ("Annie Lee",)),
    NewNode("ann2", "person", "A. Lee"),
    NewNode("bo", "person", "Bo Strand"),
]


class EntitiesContract:
    """Keeping names, linking them, merging and splitting."""

    async def test_names_are_kept_and_counted(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Of the passages that are there, and of those that come; no more when that is switched off."""
        await engine.add(PAGES[:1], collection="wïki/1")
        assert await engine.graph.list_entities(collection="wïki/1") == []
        home = await engine.graph.set_entity_extraction(collection="wïki/1")
        assert (home.names, (await engine.collections.get("wïki/1")).names) == (True, True)
        await engine.add(PAGES[1:], collection="wïki/1", source="other")
        assert await engine.graph.wait_until_extracted(collection="wïki/1") <= 3
        counts = {
            entity.name: entity.passages for entity in await engine.graph.list_entities(collection="wïki/1")
        }
        assert (counts["Ann Lee"], counts["Köln"], counts["Bo Strand"]) == (2, 2, 1)
        for fields in ({"prefix": "kö"}, {"limit": 1}, {"source": "other"}, {"limit": 0}):
            assert await engine.graph.list_entities(
                collection="wïki/1", **fields
            ) == await local.graph.list_entities(collection="wïki/1", **fields)
        assert [
            entity.name for entity in await engine.graph.list_entities(collection="wïki/1", prefix="KOL")
        ] == ["Köln"]
        off = await engine.graph.set_entity_extraction(False, collection="wïki/1")
        assert (off.names, await engine.graph.list_entities(collection="wïki/1")) == (False, [])
        for wrong in (
            engine.graph.list_entities(collection="wïki/1", limit=-1),
            engine.graph.list_entities(collection="wïki/1", limit=10_000),
        ):
            with pytest.raises(InvalidInput):
                await wrong
        for missing in (
            engine.graph.set_entity_extraction(collection="x"),
            engine.graph.list_entities(collection="wïki/1", source="x"),
        ):
            with pytest.raises(NotFound):
                await missing

    async def test_questions_walk_over_names_alike(self, engine: AnyEngine, local: AnyEngine) -> None:
        """With the way that led to each hit."""
        await engine.add([*PAGES, NewDocument("Old bridges stand in Köln.", key="4")], wait=True)
        await engine.graph.set_entity_extraction()
        await engine.graph.wait_until_extracted()
        for alpha in (0.0, 0.6, 1.0):
            query = Query("What of Bo Strand?", graph=GraphExpansion(alpha, 1))
            retrieval = await engine.retrieve(query)
            assert untimed(retrieval) == untimed(await local.retrieve(query))
        assert any("Köln" in hit.through for hit in retrieval.hits)

    async def test_texts_are_linked(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Each name with its candidates; never a person by a part of a name."""
        await engine.graph.add_nodes(PEOPLE)
        text = "Yesterday Annie Lee saw Bo Strand."
        assert await engine.graph.extract_entities(text) == await local.graph.extract_entities(text)
        links = await engine.graph.link_entities(text)
        assert {link.mention.text: link.node and link.node.id for link in links} == {
            "Annie Lee": "ann",
            "Bo Strand": "bo",
        }
        assert links == await local.graph.link_entities(text)
        start = text.index("Bo")
        [one] = await engine.graph.link_entities(text, mention=(start, start + 9), min_score=1.0)
        assert one == (await local.graph.link_entities(text, mention=(start, start + 9), min_score=1.0))[0]
        for wrong in ({"mention": (5, 500)}, {"min_score": 2.0}):
            with pytest.raises(InvalidInput):
                await engine.graph.link_entities(text, **wrong)
        with pytest.raises(NotFound):
            await engine.graph.link_entities(text, graph="nowhere")

    async def test_nodes_are_merged_and_split(self, engine: AnyEngine, local: AnyEngine) -> None:
        """By hand, with a history that says by whom and why."""
        await engine.graph.add_nodes(PEOPLE)
        await engine.graph.add_edges([NewEdge("ann2", "bo", "knows")])
        before = await engine.graph.get_node("ann2")
        one = await engine.graph.merge_nodes("ann", ["ann2"], reason="the same person 🎉")
        assert "A. Lee" in one.aliases
        assert [(edge.source, edge.target) for edge in (await engine.graph.list_edges()).edges] == [
            ("ann", "bo")
        ]
        [merge] = await engine.graph.list_merges("ann")
        assert (merge.kind, merge.before, merge.after, merge.reason) == (
            "merge",
            ("ann", "ann2"),
            ("ann",),
            "the same person 🎉",
        )
        nodes = await engine.graph.undo_merge(merge.number, reason="no")
        assert {node.id for node in nodes} == {"ann", "ann2"}
        assert (await engine.graph.get_node("ann2")).name == before.name
        assert [merge.kind for merge in await engine.graph.list_merges()] == ["merge", "split"]
        assert await engine.graph.list_merges() == await local.graph.list_merges()
        for wrong, error in (
            (engine.graph.merge_nodes("ann", []), InvalidInput),
            (engine.graph.merge_nodes("ann", ["nobody"]), NotFound),
            (engine.graph.undo_merge(99), NotFound),
            (engine.graph.undo_merge(merge.number), Conflict),
        ):
            with pytest.raises(error):
                await wrong

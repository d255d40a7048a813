"""What every record store must do with what documents state about others."""

from dataclasses import replace

import pytest

from conspectus.errors import NotFound
from conspectus.model.ids import CollectionId, DocumentId
from conspectus.model.records import PreparedDocument
from conspectus.model.relations import EVERY_SOURCE, Statement, StoredStatement
from conspectus.ports import Records
from tests.support.samples import NOTES, SHELF, prepared

REPLACES_OLD = Statement("supersedes", "old rules")
SET_BY_PERSON = Statement("amends", "old", basis="person")
OLD, NEW = DocumentId("old"), DocumentId("new")


def old_page() -> PreparedDocument:
    return replace(prepared("old", "Row slowly."), names=("old rules", "rules"))


def new_page(*statements: Statement) -> PreparedDocument:
    page = prepared("new", "Row fast.")
    return replace(page, names=("new rules",), statements=statements, editable=(NOTES,))


class RelationsContract:
    """Part of `RecordsContract`."""

    async def test_statements_come_back_with_the_documents_that_they_name(
        self, records: Records, stocked: None
    ) -> None:
        """By the document that states them, by the one that they name, and all of a collection."""
        await records.write([old_page(), new_page(REPLACES_OLD)])
        expected = StoredStatement(NEW, REPLACES_OLD, frozenset({NOTES}))
        for ids in ([NEW], [OLD], [OLD, NEW], None):
            rows = await records.read_relations(SHELF, ids)
            assert rows.statements == (expected,)
            assert rows.named == {"old rules": (OLD,)}
        assert await records.has_statements(SHELF)

    async def test_documents_without_statements_have_no_relations(
        self, records: Records, stocked: None
    ) -> None:
        await records.write([old_page()])
        assert not await records.has_statements(SHELF)
        assert (await records.read_relations(SHELF, [OLD, DocumentId("nobody")])).statements == ()
        assert (await records.read_relations(SHELF, [])).statements == ()
        assert (await records.read_relations(CollectionId("gone"), [OLD])).statements == ()

    async def test_what_a_text_states_changes_with_it(self, records: Records, stocked: None) -> None:
        """What a person set stays; the rights at the first writing of a statement stay too."""
        await records.write([old_page(), new_page(REPLACES_OLD)])
        await records.set_relation(NEW, SET_BY_PERSON, [EVERY_SOURCE])
        changed = prepared("new", "Row faster.")
        await records.write([replace(changed, statements=(REPLACES_OLD,), editable=("other",))])
        stored = set((await records.read_relations(SHELF, [NEW])).statements)
        by_person = StoredStatement(NEW, SET_BY_PERSON, frozenset({EVERY_SOURCE}))
        assert stored == {StoredStatement(NEW, REPLACES_OLD, frozenset({NOTES})), by_person}
        await records.write([prepared("new", "Row.")])
        assert (await records.read_relations(SHELF, [NEW])).statements == (by_person,)

    async def test_a_relation_of_a_person_is_set_once_and_deleted(
        self, records: Records, stocked: None
    ) -> None:
        await records.write([old_page(), new_page()])
        for editable in (["a"], ["b", "c"]):
            await records.set_relation(NEW, SET_BY_PERSON, editable)
        rows = await records.read_relations(SHELF, [OLD])
        assert rows.statements == (StoredStatement(NEW, SET_BY_PERSON, frozenset({"b", "c"})),)
        assert await records.delete_relation(NEW, SET_BY_PERSON) == 1
        assert await records.delete_relation(NEW, SET_BY_PERSON) == 0
        assert not await records.has_statements(SHELF)
        nobody = DocumentId("nobody")
        with pytest.raises(NotFound):
            await records.set_relation(nobody, SET_BY_PERSON, [])
        with pytest.raises(NotFound):
            await records.delete_relation(nobody, SET_BY_PERSON)

    async def test_names_and_statements_go_with_their_document(self, records: Records, stocked: None) -> None:
        await records.write([old_page(), new_page(REPLACES_OLD)])
        await records.delete([OLD])
        assert (await records.read_relations(SHELF, [NEW])).named == {}
        await records.delete([NEW])
        assert not await records.has_statements(SHELF)

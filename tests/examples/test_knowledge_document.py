"""The functions of the document that describes a knowledge base, with their options and defaults."""

import hashlib
from collections.abc import AsyncIterator
from inspect import Parameter, signature
from pathlib import Path

import pytest

import conspectus
from conspectus.errors import InvalidInput, NotFound, PermissionDenied
from conspectus.facades.chunker import Chunker
from conspectus.facades.knowledge import KnowledgeBase

FUNCTIONS = {
    "create_collection": (["attrs", "user_id"], {}),
    "list_collections": (["user_id"], {}),
    "list_accessible_collections": (["user_id"], {}),
    "get_collection": (["id", "user_id"], {}),
    "update_collection": (["id", "attrs", "user_id"], {}),
    "delete_collection": (["id", "user_id"], {}),
    "create_source": (["collection_id", "attrs", "user_id"], {}),
    "list_sources": (["collection_id", "user_id"], {}),
    "get_source": (["id", "user_id"], {}),
    "update_source": (["id", "attrs", "user_id"], {}),
    "delete_source": (["id", "user_id"], {}),
    "create_document": (["source_id", "attrs", "user_id"], {}),
    "list_documents": (["source_id", "user_id"], {}),
    "get_document": (["id", "user_id"], {}),
    "delete_document": (["id", "user_id"], {}),
    "embed_chunks": (["document_id", "chunks", "user_id"], {"dimensions": None}),
    "list_chunks_for_document": (["document_id", "user_id"], {}),
    "delete_document_chunks": (["document_id", "user_id"], {}),
    "search": (["collection_id", "query", "user_id"], {"limit": 20, "dimensions": None}),
    "rerank": (["query", "results", "user_id"], {"top_n": 5}),
    "search_and_rerank": (["collection_id", "query", "user_id"], {"search_limit": 50, "top_n": 5}),
    "search_accessible": (["collection_id", "query", "user_id"], {}),
    "augment_context": (["query", "user_id"], {}),
    "ingest_url": (["collection_id", "url", "user_id"], {}),
}
"""Each function of the document; one that has no user there has one here."""


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[KnowledgeBase]:
    async with conspectus.open(tmp_path) as engine:
        yield KnowledgeBase(engine)


@pytest.fixture
async def people(base: KnowledgeBase) -> tuple[str, str]:
    ada, bob = [(await base._engine.people.create_user(name)).id for name in ("ada", "bob")]
    return ada, bob


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_arguments_and_defaults_of_the_document(name: str) -> None:
    arguments, defaults = FUNCTIONS[name]
    parameters = signature(getattr(KnowledgeBase, name)).parameters
    required = [
        key
        for key, parameter in parameters.items()
        if parameter.default is Parameter.empty and parameter.kind == Parameter.POSITIONAL_OR_KEYWORD
    ]
    assert required == ["self", *arguments]
    assert {key: parameters[key].default for key in defaults} == defaults


async def test_the_data_model(base: KnowledgeBase, people: tuple[str, str]) -> None:
    """Collection, source, document, chunk; and what belongs to somebody else is not found."""
    ada, bob = people
    collection = await base.create_collection({"name": "Wiki"}, ada)
    source = await base.create_source(collection.id, {"name": "example.org"}, ada)
    content = "Backups run at two. Restores need an administrator."
    document = await base.create_document(source.id, {"title": "Backups", "content": content}, ada)
    assert document.content_hash == hashlib.sha256(content.encode()).hexdigest()
    chunks = [
        {"content": "Backups run at two. ", "position": 0},
        {"content": "Restores need an administrator.", "position": 1},
    ]
    embedded = await base.embed_chunks(document.id, chunks, ada)
    assert (embedded.status, embedded.chunk_count) == ("embedded", 2)
    stored = await base.list_chunks_for_document(document.id, ada)
    assert [(chunk.content, chunk.position) for chunk in stored] == [
        (chunk["content"], chunk["position"]) for chunk in chunks
    ]
    assert all(chunk.token_count > 0 and chunk.content_hash for chunk in stored)
    with pytest.raises(NotFound):
        await base.get_document(document.id, bob)
    assert await base.list_accessible_collections(bob) == []
    assert await base.delete_document_chunks(document.id, ada) == 2
    assert await base.list_chunks_for_document(document.id, ada) == []


async def test_search_and_context(base: KnowledgeBase, people: tuple[str, str]) -> None:
    ada, bob = people
    collection = await base.create_collection({"name": "Wiki"}, ada)
    source = await base.create_source(collection.id, {"name": "wiki", "source_type": "wiki"}, ada)
    for title, content in (("Backups", "Backups run at two."), ("Lunch", "Lunch is at noon.")):
        await base.create_document(source.id, {"title": title, "content": content}, ada)
    await base._engine.as_person(await _person(base, ada)).documents.wait_until_embedded(
        collection=collection.id
    )
    results = await base.search(collection.id, "when do backups run?", ada)
    assert [result.document.title for result in results] == ["Backups", "Lunch"]
    assert 0.0 <= results[0].distance <= results[1].distance <= 2.0
    ranked = await base.search_and_rerank(collection.id, "when do backups run?", ada, top_n=1)
    assert [result.document.title for result in ranked] == ["Backups"]
    assert ranked[0].relevance_score is None and ranked[0].notice
    context = await base.augment_context("when do backups run?", ada)
    assert [result.document.title for result in context] == ["Backups"]
    assert context[0].document.source is not None
    assert await base.augment_context("when do backups run?", bob) == []
    with pytest.raises(NotFound):
        await base.search_accessible(collection.id, "backups", bob)
    with pytest.raises((NotFound, PermissionDenied)):
        await base.ingest_url(collection.id, "https://example.org", bob)
    with pytest.raises(InvalidInput):
        await base.search(collection.id, "backups", ada, dimensions=7)


async def _person(base: KnowledgeBase, user: str) -> conspectus.model.access.Person:
    stored = await base._engine.people.get_user(user)
    return conspectus.model.access.Person(stored.name, stored.owner, stored.id)


def test_the_chunker_splits_by_its_hierarchy() -> None:
    pieces = Chunker.split("one\n\ntwo", chunk_size=2000, overlap=200, separators=["\n\n", "\n", ". ", " "])
    assert [(piece.content, piece.position) for piece in pieces] == [("one\n\ntwo", 0)]
    words = Chunker.split("word " * 100, chunk_size=50, overlap=10)
    assert all(len(piece.content) <= 50 and piece.token_count > 0 for piece in words)
    assert [piece.position for piece in words] == list(range(len(words)))
    assert Chunker.split("x" * 130, chunk_size=50, overlap=0)[2].content == "x" * 30

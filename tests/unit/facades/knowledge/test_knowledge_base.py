"""A knowledge base of several users."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied, ProviderUnavailable
from conspectus.facades.knowledge import KnowledgeBase
from conspectus.model.access import Principal
from conspectus.testing.embedders import HashedEmbedder


class Longest:
    """Ranks the longest text first; out of order when told so."""

    model = "longest"

    def __init__(self) -> None:
        self.calls = 0
        self.broken = False

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        self.calls += 1
        if self.broken:
            raise ProviderUnavailable("longest", "is out of order")
        order = sorted(range(len(texts)), key=lambda number: (-len(texts[number]), number))
        return [(number, len(texts[number]) / 10_000) for number in order[:limit]]

    async def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def reranker() -> Longest:
    return Longest()


@pytest.fixture
async def engine(tmp_path: Path, reranker: Longest) -> AsyncIterator[Engine]:
    settings = Settings()
    embedder = HashedEmbedder(256)
    async with conspectus.open(tmp_path, settings=settings, embedder=embedder, reranker=reranker) as opened:
        yield opened


@pytest.fixture
async def base(engine: Engine) -> KnowledgeBase:
    return KnowledgeBase(engine)


@pytest.fixture
async def ada(engine: Engine) -> str:
    return (await engine.people.create_user("ada")).id


@pytest.fixture
async def bob(engine: Engine) -> str:
    return (await engine.people.create_user("bob")).id


async def fill_collection(base: KnowledgeBase, user: str, texts: Sequence[str]) -> str:
    collection = await base.create_collection({"name": "Notes"}, user)
    source = await base.create_source(collection.id, {"name": "manual"}, user)
    for number, text in enumerate(texts):
        await base.create_document(source.id, {"title": f"note {number}", "content": text}, user)
    return collection.id


async def test_two_users_may_give_their_collections_the_same_name(
    base: KnowledgeBase, ada: str, bob: str
) -> None:
    first = await base.create_collection({"name": "Wiki", "description": "mine"}, ada)
    second = await base.create_collection({"name": "Wiki"}, bob)
    assert first.id != second.id
    assert (first.name, first.embedding_dimensions, first.user_id) == ("Wiki", 256, ada)
    assert [collection.id for collection in await base.list_collections(ada)] == [first.id]
    with pytest.raises(Conflict):
        await base.create_collection({"name": "Wiki"}, ada)


@pytest.mark.parametrize("size", [0, 300, 1024, "256"])
async def test_dimensions_must_be_ones_the_embedder_makes(
    base: KnowledgeBase, ada: str, size: object
) -> None:
    with pytest.raises(InvalidInput, match="dimensions"):
        await base.create_collection({"name": "Wiki", "embedding_dimensions": size}, ada)
    collection = await base.create_collection({"name": "Wiki", "embedding_dimensions": 256}, ada)
    assert collection.embedding_dimensions == 256


async def test_a_source_is_of_a_kind_there_is(base: KnowledgeBase, ada: str) -> None:
    collection = await base.create_collection({"name": "Wiki"}, ada)
    source = await base.create_source(collection.id, {"name": "pages", "source_type": "web"}, ada)
    assert source.source_type == "web"
    with pytest.raises(InvalidInput, match="kind"):
        await base.create_source(collection.id, {"name": "other", "source_type": "magic"}, ada)


async def test_what_belongs_to_another_user_does_not_exist(base: KnowledgeBase, ada: str, bob: str) -> None:
    collection = await fill_collection(base, ada, ["heron"])
    source = (await base.list_sources(collection, ada))[0]
    document = (await base.list_documents(source.id, ada))[0]
    for attempt in (
        base.get_collection(collection, bob),
        base.update_collection(collection, {"name": "x"}, bob),
        base.delete_collection(collection, bob),
        base.list_sources(collection, bob),
        base.create_source(collection, {"name": "mine"}, bob),
        base.get_source(source.id, bob),
        base.delete_source(source.id, bob),
        base.create_document(source.id, {"content": "x"}, bob),
        base.list_documents(source.id, bob),
        base.get_document(document.id, bob),
        base.delete_document(document.id, bob),
        base.embed_chunks(document.id, [{"content": "x", "position": 0}], bob),
        base.list_chunks_for_document(document.id, bob),
        base.delete_document_chunks(document.id, bob),
        base.search(collection, "heron", bob),
        base.search_accessible(collection, "heron", bob),
        base.search_and_rerank(collection, "heron", bob),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await base.augment_context("heron", bob, floor=-1.0) == []
    assert await base.list_accessible_collections(bob) == []
    assert len(await base.list_documents(source.id, ada)) == 1


async def test_a_shared_source_is_seen_until_it_is_revoked(
    base: KnowledgeBase, engine: Engine, ada: str, bob: str
) -> None:
    collection = await fill_collection(base, ada, ["a heron in the reeds"])
    hidden = await base.create_source(collection, {"name": "private"}, ada)
    await base.create_document(hidden.id, {"content": "a heron in the attic"}, ada)
    shared = next(source for source in await base.list_sources(collection, ada) if source.name == "manual")
    await engine.documents.wait_until_embedded(collection=collection)
    await engine.access.grant(collection, Principal("user", bob), "viewer", source=shared.id)
    ranked = await base.search_accessible(collection, "heron", bob)
    assert [match.chunk.content for match in ranked] == ["a heron in the reeds"]
    assert [source.id for source in await base.list_sources(collection, bob)] == [shared.id]
    assert [collection.id for collection in await base.list_accessible_collections(bob)] == [collection]
    assert await base.list_collections(bob) == []
    with pytest.raises(PermissionDenied):
        await base.create_document(shared.id, {"content": "x"}, bob)
    await engine.access.revoke(collection, Principal("user", bob), source=shared.id)
    with pytest.raises(NotFound):
        await base.search_accessible(collection, "heron", bob)


async def test_search_measures_the_angle_and_not_the_length(
    base: KnowledgeBase, engine: Engine, ada: str
) -> None:
    collection = await fill_collection(base, ada, ["heron", "heron " * 50, "torque"])
    await engine.documents.wait_until_embedded(collection=collection)
    matches = await base.search(collection, "heron", ada)
    assert [match.distance for match in matches] == sorted(match.distance for match in matches)
    by_title = {match.document.title: match.distance for match in matches}
    assert by_title["note 1"] < by_title["note 2"]
    assert len(await base.search(collection, "heron", ada, limit=1)) == 1
    with pytest.raises(InvalidInput, match="dimensions"):
        await base.search(collection, "heron", ada, dimensions=512)


async def test_the_hash_is_that_of_the_content(base: KnowledgeBase, ada: str) -> None:
    collection = await fill_collection(base, ada, ["same", "same", ""])
    source = (await base.list_sources(collection, ada))[0]
    hashes = [document.content_hash for document in await base.list_documents(source.id, ada)]
    assert hashes[0] == hashes[1]
    assert hashes[2] is None


async def test_embedding_the_same_chunks_again_changes_nothing(base: KnowledgeBase, ada: str) -> None:
    collection = await fill_collection(base, ada, [""])
    source = (await base.list_sources(collection, ada))[0]
    document = (await base.list_documents(source.id, ada))[0]
    chunks = [{"content": "second.", "position": 1}, {"content": "first. ", "position": 0}]
    for _ in range(2):
        done = await base.embed_chunks(document.id, chunks, ada)
        assert (done.status, done.chunk_count) == ("embedded", 2)
    stored = await base.list_chunks_for_document(document.id, ada)
    assert [(chunk.content, chunk.position) for chunk in stored] == [("first. ", 0), ("second.", 1)]
    assert await base.delete_document_chunks(document.id, ada) == 2
    assert await base.list_chunks_for_document(document.id, ada) == []


@pytest.mark.parametrize(("number", "judged"), [(45, 40), (39, 0)])
async def test_many_candidates_are_judged_and_few_are_all_given(
    base: KnowledgeBase, engine: Engine, ada: str, *, number: int, judged: int
) -> None:
    collection = await fill_collection(base, ada, [f"heron {number}" for number in range(number)])
    await engine.documents.wait_until_embedded(collection=collection)
    ranked = await base.augment_context("heron", ada)
    assert len(ranked) == (judged or number)
    assert sum(match.relevance_score is not None for match in ranked) == judged


async def test_context_has_a_floor_and_a_budget(base: KnowledgeBase, engine: Engine, ada: str) -> None:
    collection = await fill_collection(base, ada, ["a heron stands in the water", "torque and force " * 20])
    await engine.documents.wait_until_embedded(collection=collection)
    assert [ranked.document.title for ranked in await base.augment_context("heron water", ada)] == ["note 0"]
    assert await base.augment_context("heron water", ada, max_tokens=3) == []


async def test_a_broken_reranker_costs_the_scores_and_not_the_answer(
    base: KnowledgeBase, engine: Engine, ada: str, reranker: Longest
) -> None:
    collection = await fill_collection(base, ada, ["heron", "heron in the reeds by the lake"])
    await engine.documents.wait_until_embedded(collection=collection)
    good = await base.search_and_rerank(collection, "heron", ada)
    assert [ranked.document.title for ranked in good] == ["note 1", "note 0"]
    reranker.broken = True
    poor = await base.search_and_rerank(collection, "heron", ada)
    assert len(poor) == 2
    assert all(ranked.relevance_score is None and "out of order" in str(ranked.notice) for ranked in poor)
    calls = reranker.calls
    assert await base.rerank("heron", [], ada) == []
    assert reranker.calls == calls
    results = await base.search(collection, "heron", ada)
    assert [ranked.chunk.id for ranked in await base.rerank("heron", results, ada, top_n=1)] == [
        results[0].chunk.id
    ]

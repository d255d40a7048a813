"""What every engine must answer, and how it looks after its store."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus.model.filter import Eq, Overlaps
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import Budget, Query, QueryOptions
from conspectus.model.records import NewDocument
from conspectus.model.results import CacheBreak, CachePlan
from conspectus.text.times import parse_instant
from tests.support.engine_samples import FILTERS, NOTES, AnyEngine, filled, untimed

QUESTIONS: list[tuple[str | Query, dict[str, Any]]] = [
    ("when does the backup run?", {}),
    ("Köln 🎉 \ud800", {"limit": 2}),
    ("", {}),
    ("who is on call", {"retrievers": ("keyword",), "filter": Eq("thread", "t")}),
    ("backup", {"collection": "*", "min_similarity": 0.1}),
    ("how old is the emperor", {"min_confidence": 0.99}),
    ("backup", {"filter": Overlaps(parse_instant(0), parse_instant(90))}),
    (
        Query("the tests", limit=3, min_similarity=0.2, filter=Eq("kind", "page")),
        {"limit": 1, "rerank": False},
    ),
    ("a vector of my own", {"vector": (1.0,) + (0.0,) * 63}),
    ("backup", {"graph": GraphExpansion(0.7, 3)}),
    (Query("the tests", graph=GraphExpansion(graphs=())), {"as_of": parse_instant("2100-01-01T00:00:00Z")}),
]
BUDGETS: list[int | Budget] = [
    0,
    7,
    60,
    Budget(200, "chars4_ceil", system="Be brief.", query="When?", reserved_tokens=20),
]
FORMS = ("text", "xml", "json", "messages", "guarded")
NO_QUESTIONS: list[dict[str, Any]] = [
    {"limit": -1},
    {"limit": 10**6},
    {"min_similarity": 7.0},
    {"retrievers": ("ears",)},
    {"x": 1},
]

WALK = GraphExpansion(hops=3)


class SearchContract:
    """Questions: the same answer, whoever is asked."""

    async def test_hits_are_the_same_everywhere(self, engine: AnyEngine, local: AnyEngine) -> None:
        """With every score and every part of it."""
        await filled(engine)
        for question, fields in QUESTIONS:
            retrieval = await engine.retrieve(question, **fields)
            assert untimed(retrieval) == untimed(await local.retrieve(question, **fields))
            assert retrieval.timings.keys() == (await local.retrieve(question, **fields)).timings.keys()
        for where in FILTERS:
            assert (await engine.retrieve("the backup", filter=where)).hits

    async def test_feedback_is_given_listed_and_revoked(self, engine: AnyEngine, local: AnyEngine) -> None:
        """On the passages of a window by number, or on chunks; the answer is the same afterwards."""
        await filled(engine)
        before = await local.retrieve("the tests")
        window = await engine.window("the tests", 200)
        first, last = window.citations[0], window.citations[-1]
        feedback_list = await engine.search.feedback(window, used=[last.number], wrong=[first.number])
        assert [(feedback.chunk, feedback.used) for feedback in feedback_list] == [
            *((chunk, True) for chunk in last.chunks),
            *((chunk, False) for chunk in first.chunks),
        ]
        after = await engine.retrieve("the tests")
        assert untimed(after) == untimed(await local.retrieve("the tests"))
        parts = {int(hit.chunk.id): hit.parts["feedback"] for hit in after.hits}
        assert (parts[last.chunks[0]], parts[first.chunks[0]]) == (0.15, -0.15)
        page = await engine.search.list_feedback(limit=1)
        rest = await engine.search.list_feedback(after=page.next)
        assert sorted(feedback.id for feedback in (*page.feedback, *rest.feedback)) == sorted(
            x.id for x in feedback_list
        )
        for judgment in feedback_list:
            await engine.search.revoke_feedback(judgment.id)
        assert untimed(await engine.retrieve("the tests")) == untimed(before)

    async def test_records_are_kept_only_where_the_settings_say_so(self, engine: AnyEngine) -> None:
        """By default they do not; what does not exist is not found."""
        await filled(engine)
        assert (await engine.window("backup", 100)).answer == ""
        page = await engine.answers.list(kind="window", limit=5)
        assert (page.answers, page.next) == ((), None)
        for call in (engine.answers.get, engine.answers.delete):
            with pytest.raises(NotFound):
                await call("0195f3a1c2d47e80b6a4c1d2e3f40517")

    async def test_what_is_no_feedback(self, engine: AnyEngine) -> None:
        """Each refusal names what is wrong."""
        await filled(engine)
        window = await engine.window("the tests", 200)
        chunk = window.citations[0].chunks[0]
        for call in (
            engine.search.feedback(window, used=[99]),
            engine.search.feedback(window),
            engine.search.add_feedback("  ", used=[chunk]),
            engine.search.add_feedback("q", used=[chunk], wrong=[chunk]),
            engine.search.list_feedback(limit=0),
            engine.search.list_feedback(after="nonsense"),
        ):
            with pytest.raises(InvalidInput):
                await call
        for unknown in (
            engine.search.add_feedback("q", used=[chunk, 987_654]),
            engine.search.add_feedback("q", wrong=[2**62, -(2**62)]),
            engine.search.revoke_feedback("nonsense"),
            engine.search.list_feedback(collection="nowhere"),
        ):
            with pytest.raises(NotFound):
                await unknown
        assert (await engine.search.list_feedback()).feedback == ()

    async def test_walks_are_the_same(self, engine: AnyEngine, local: AnyEngine) -> None:
        """With the names that led to each hit, and the same words of refusal."""
        await filled(engine)
        await engine.add(NewDocument("Ask Ann about Backups.", "Ann", key="ann"), wait=True)
        await engine.graph.set_entity_extraction()
        await engine.graph.wait_until_extracted()
        for question in ("who is ann?", Query("every night at two", graph=GraphExpansion(1.0, 5))):
            options: QueryOptions = {} if isinstance(question, Query) else {"graph": WALK}
            there = await engine.retrieve(question, **options)
            here = await local.retrieve(question, **options)
            assert untimed(there) == untimed(here)
            assert any(hit.through for hit in there.hits)
        window = await engine.explain("every night at two", 200, graph=WALK)
        assert untimed(window) == untimed(await local.explain("every night at two", 200, graph=WALK))
        for ask in (GraphExpansion(hops=99), GraphExpansion(graphs=("nothing",))):
            with pytest.raises((InvalidInput, NotFound)) as there_too:
                await engine.retrieve("x", graph=ask)
            with pytest.raises((InvalidInput, NotFound)) as here_too:
                await local.retrieve("x", graph=ask)
            assert str(there_too.value) == str(here_too.value)

    @pytest.mark.parametrize("budgets", [1, pytest.param(len(BUDGETS), marks=pytest.mark.slow)])
    async def test_windows_are_the_same_byte_for_byte(
        self, engine: AnyEngine, local: AnyEngine, budgets: int
    ) -> None:
        """With the trace: each pair of question, form and budget; all three in `make bench`."""
        await filled(engine)
        for (number, (question, fields)), (turn, form), further in product(
            enumerate(QUESTIONS), enumerate(FORMS), range(budgets)
        ):
            budget = BUDGETS[(number + turn + further) % len(BUDGETS)]
            there = await engine.window(question, budget, format=form, **fields)
            here = await local.window(question, budget, format=form, **fields)
            assert untimed(there) == untimed(here)
            assert there.tokens <= there.max_tokens

    async def test_the_parts_of_a_window_add_up_to_its_budget(
        self, engine: AnyEngine, local: AnyEngine
    ) -> None:
        """On request only, and nothing else of the window changes."""
        await filled(engine)
        budget = Budget(300, system="Be brief.", query="When?", reserved_tokens=20)
        for form in ("text", "json"):
            window = await engine.window("when is the backup?", budget, format=form, parts=True)
            here = await local.window("when is the backup?", budget, format=form, parts=True)
            assert window.parts == here.parts
            assert sum(part.tokens for part in window.parts) == 300
            assert {"system", "query", "passage", "free", "reserved"} <= {part.kind for part in window.parts}
            plain = await engine.window("when is the backup?", budget, format=form)
            assert untimed(replace(window, parts=())) == untimed(plain)

    async def test_a_window_begins_with_the_previous_one(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Until a document is deleted; the plan says what stands, and why the rest does not."""
        ids = await filled(engine)
        first = await engine.window("when is the backup?", 300)
        assert first.cache_plan is None
        await engine.add("The ferry to the island sails at noon.", wait=True)
        fields: dict[str, Any] = {"previous": first.state, "limit": 3}
        window = await engine.window("which ferry sails at noon?", 300, **fields)
        assert untimed(window) == untimed(await local.window("which ferry sails at noon?", 300, **fields))
        assert window.text.startswith(first.text)
        assert "to the island" in window.text.removeprefix(first.text)
        assert window.cache_plan == CachePlan(len(first.text.encode()), len(first.text), first.tokens)
        await engine.documents.delete(ids[0])
        chunk = next(candidate.chunk for candidate in window.trace if candidate.document == ids[0])
        window = await engine.window("which ferry?", 300, previous=window.state)
        assert window.cache_plan is not None
        assert CacheBreak(chunk, "not_found") in window.cache_plan.breaks
        assert "every night" not in window.text

    async def test_an_explanation_begins_with_the_previous_window(self, engine: AnyEngine) -> None:
        """It says of what stands there that it is kept."""
        await filled(engine)
        first = await engine.window("when is the backup?", 300)
        await engine.add("The ferry to the island sails at noon.", wait=True)
        window = await engine.explain("which ferry sails at noon?", 300, previous=first.state)
        assert window.text.startswith(first.text)
        assert window.cache_plan == CachePlan(len(first.text.encode()), len(first.text), first.tokens)
        carried_over = [
            candidate
            for candidate in window.trace
            if candidate.reason.endswith(", kept from the previous window")
        ]
        assert {candidate.document for candidate in carried_over} == {
            citation.document for citation in first.citations
        }
        assert {(candidate.origin, candidate.trust) for candidate in window.trace} == {("user", "trusted")}

    async def test_a_state_opens_nothing(self, engine: AnyEngine) -> None:
        """It shows nothing of other collections or beyond the filter, and anything else is refused."""
        await filled(engine)
        await engine.add("A secret of another collection.", collection="other", wait=True)
        other = await engine.window("secret", 300, collection="other")
        window = await engine.window("secret", 300, previous=other.state)
        assert "another collection" not in window.text
        mine = await engine.window("backup", 300)
        only = await engine.window("backup", 300, previous=mine.state, filter=Eq("kind", "message"))
        assert {citation.key for citation in only.citations} <= {"4", "5"}
        for wrong in ("x", "0" * 12 + ":1,1", "0" * 12 + ":" + ",".join(map(str, range(6_000)))):
            with pytest.raises(InvalidInput, match="previous"):
                await engine.window("backup", 300, previous=wrong)

    async def test_explanations_are_the_same(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Of what was found, and of what was not."""
        ids = await filled(engine)
        for question, fields in QUESTIONS:
            for document in (None, ids[3]):
                there = await engine.explain(question, 40, document=document, **fields)
                assert untimed(there) == untimed(
                    await local.explain(question, 40, document=document, **fields)
                )
        with pytest.raises(NotFound):
            await engine.explain("backup", 40, document="nobody")

    async def test_an_explanation_says_from_which_budget_on(
        self, engine: AnyEngine, local: AnyEngine
    ) -> None:
        """Of the candidates that were left out, or of those of one document alone."""
        ids = await filled(engine)
        there = await engine.explain("when is the backup?", 40, fits_from=True)
        assert untimed(there) == untimed(await local.explain("when is the backup?", 40, fits_from=True))
        out = next(candidate for candidate in there.trace if candidate.status == "over_budget")
        assert out.fits_from is not None
        for tokens, inside in ((out.fits_from, True), (out.fits_from - 1, False)):
            window = await engine.explain("when is the backup?", tokens)
            assert (window.trace[out.rank - 1].status == "included") is inside
        alone = await engine.explain("when is the backup?", 5, document=ids[3], fits_from=True)
        assert {candidate.document for candidate in alone.trace if candidate.fits_from} == {ids[3]}
        plain = await engine.explain("when is the backup?", 40)
        assert {candidate.fits_from for candidate in plain.trace} == {None}

    async def test_reranking_and_augmenting_are_the_same(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Without a reranker the order stays, and that is said."""
        await filled(engine)
        await engine.add("Backups of another collection.", collection="other", wait=True)
        hits = (await engine.retrieve("backup")).hits
        judged = await engine.search.rerank("backup", hits, limit=2)
        assert judged == await local.search.rerank("backup", hits, limit=2)
        assert ([reranked.hit for reranked in judged.results], judged.notice is not None) == (
            list(hits[:2]),
            True,
        )
        query = Query("backup", limit=1, min_similarity=0.9, collection="default")
        broad = await engine.search.search_and_rerank(query, candidates=4, limit=3, min_similarity=None)
        assert broad == await local.search.search_and_rerank(
            query, candidates=4, limit=3, min_similarity=None
        )
        window = await engine.search.augment(query, 100, min_similarity=0.0)
        assert untimed(window) == untimed(await local.search.augment(query, 100, min_similarity=0.0))
        assert {candidate.title for candidate in window.trace} >= {"", "Backups"}
        assert untimed(await engine.search.augment("x", 9)) == untimed(await local.search.augment("x", 9))

    async def test_a_question_that_is_none(self, engine: AnyEngine) -> None:
        """What no question can have is refused."""
        await filled(engine)
        for wrong in NO_QUESTIONS:
            with pytest.raises(InvalidInput):
                await engine.retrieve("a", **wrong)

    async def test_what_cannot_be_answered(self, engine: AnyEngine) -> None:
        """Unknown collections, renderers and tokenizers, and questions without end."""
        await filled(engine)
        for call in (engine.retrieve("a", collection="none"), engine.window("a", 9, collection="none")):
            with pytest.raises(NotFound) as caught:
                await call
            assert (caught.value.kind, caught.value.name) == ("collection", "none")
        for wrong in (engine.window("a", 9, format="pdf"), engine.window("a", Budget(9, "abacus"))):  # type: ignore[arg-type]
            with pytest.raises(InvalidInput):
                await wrong
        with pytest.raises(TooLarge) as large:
            await engine.retrieve("x" * 20_000)
        assert (large.value.size, large.value.limit) == (20_000, 10_000)


class UpkeepContract:
    """Numbers, checks, and building anew."""

    async def test_the_store_is_told_in_numbers(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Of one collection or of all."""
        await filled(engine)
        status, local_status = await engine.maintenance.status(), await local.maintenance.status()
        [numbers] = status.collections
        assert (numbers.documents, numbers.vectors, numbers.pending) == (len(NOTES), numbers.chunks, 0)
        assert replace(status, bytes=0) == replace(local_status, bytes=0)
        assert status.bytes > 1_000 and local_status.bytes > 1_000
        assert (await engine.maintenance.status(collection="default")).collections == status.collections
        with pytest.raises(NotFound):
            await engine.maintenance.status(collection="none")

    async def test_indexes_are_checked_and_built_anew(self, engine: AnyEngine, local: AnyEngine) -> None:
        """And the same is found afterwards."""
        await filled(engine)
        before = untimed(await engine.retrieve("backup"))
        assert (await engine.maintenance.check()) == (await local.maintenance.check())
        assert (await engine.maintenance.check()).clean
        await engine.maintenance.reindex()
        assert await engine.documents.wait_until_embedded() == 0
        assert untimed(await engine.retrieve("backup")) == before

    async def test_a_collection_moves_only_to_an_embedder(self, engine: AnyEngine) -> None:
        """And not to none, or to one that does not exist."""
        await engine.add("a", wait=True)
        for name in ("none", "nonsense"):
            with pytest.raises(InvalidInput):
                await engine.maintenance.reembed(name)
        with pytest.raises(NotFound):
            await engine.maintenance.reembed("minilm", collection="none")

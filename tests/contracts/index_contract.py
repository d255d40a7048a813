"""What every index must do. Subclass `IndexContract`, give it `open_index`, let pytest collect it."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from conspectus.errors import UnindexableText
from conspectus.model.filter import (
    EVERYTHING,
    And,
    Between,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    matches,
)
from conspectus.model.records import Json, Period
from conspectus.ports import Candidates, Index, Probe, Vectors
from tests.support.journal import Journal, make_chunk, unit

DIMENSIONS = 8
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
OpenIndex = Callable[[Journal], Awaitable[Index]]


def axis(number: int) -> Vectors:
    """The unit vector along one axis."""
    return unit(np.arange(DIMENSIONS) == number % DIMENSIONS)


def ask(
    words: str | None = None, vector: Vectors | None = None, *, where: Filter = EVERYTHING, limit: int = 10
) -> Probe:
    """A probe with the usual defaults."""
    return Probe(where, words, vector, limit)


async def catch_up(index: Index, journal: Journal) -> None:
    """Apply what the index has not seen."""
    await index.apply(await journal.changes_since(index.applied_sequence(), limit=1_000_000))


def ids(candidates: Candidates) -> list[int]:
    """The ids of candidates as plain numbers."""
    return [int(number) for number in candidates.ids]


class Unsplittable(str):
    """A text that no analyzer can handle."""

    __slots__ = ()

    def split(self, *_: object) -> list[str]:
        """Fail as an analyzer does that looks for what is not there."""
        raise LookupError(str(self))


class IndexContract:
    """The behaviour of every index, as tests. Fixtures to override: `open_index`."""

    @pytest.fixture
    def open_index(self) -> OpenIndex:
        """How to open the adapter on a journal; opening twice on one journal must find the same data."""
        raise NotImplementedError

    @pytest.fixture
    def journal(self) -> Journal:
        """Empty records."""
        return Journal()

    @pytest.fixture
    async def index(self, open_index: OpenIndex, journal: Journal) -> AsyncIterator[Index]:
        """An index over the journal, closed afterwards."""
        opened = await open_index(journal)
        yield opened
        await opened.close()

    async def test_empty(self, index: Index) -> None:
        """Nothing stored: nothing found, and no failure."""
        candidates = await index.search(ask("anything", axis(0)))
        assert (ids(candidates), candidates.total, index.applied_sequence()) == ([], 0, 0)
        assert [(term.term, term.documents) for term in candidates.terms] == [("anyth", 0)]
        assert await index.check() == []
        assert (await index.status()).chunks == 0

    async def test_words(self, index: Index, journal: Journal) -> None:
        """Rare terms weigh more than frequent ones, titles count, chunks without a match stay out."""
        texts = ["the red fox", "the blue fox jumps", "the sun", "nothing of it"]
        journal.put(make_chunk(number, text) for number, text in enumerate(texts, start=1))
        journal.put([make_chunk(9, "of animals", title="Blue whales")])
        await catch_up(index, journal)
        candidates = await index.search(ask("fox blue"))
        assert ids(candidates) == [1, 2, 9]
        assert candidates.words[1] > candidates.words[2] > 0.0
        assert np.isnan(candidates.cosine).all()
        assert [(term.term, term.documents) for term in candidates.terms] == [("fox", 2), ("blue", 2)]
        assert candidates.total == 5

    async def test_vectors(self, index: Index, journal: Journal) -> None:
        """The nearest vectors are found, without words; a chunk without a vector is not among them."""
        journal.put(make_chunk(number, "", vector=axis(number)) for number in range(5))
        journal.put([make_chunk(7, "no vector")])
        await catch_up(index, journal)
        candidates = await index.search(ask(vector=unit(axis(3) + axis(4) / 2), limit=2))
        assert ids(candidates) == [3, 4]
        assert candidates.cosine == pytest.approx([0.8944, 0.4472], abs=1e-3)
        assert candidates.words.tolist() == [0.0, 0.0]

    async def test_a_chunk_that_cannot_be_analyzed(self, index: Index, journal: Journal) -> None:
        """It stops the index until it is marked; then its vector is found, and its words once mended."""
        vector = axis(2)
        journal.put([make_chunk(1, "fox"), make_chunk(2, Unsplittable("fox sun"), vector=vector)])
        journal.put([make_chunk(3, "fox moon")])
        with pytest.raises(UnindexableText, match="LookupError"):
            await catch_up(index, journal)
        marked = make_chunk(2, Unsplittable("fox sun"), vector=vector)
        journal.put([replace(marked, chunk=replace(marked.chunk, unindexable="LookupError"))])
        for build in (False, True):
            if build:
                await index.rebuild()
            await catch_up(index, journal)
            assert ids(await index.search(ask("fox"))) == [1, 3]
            assert ids(await index.search(ask(vector=vector))) == [2]
            assert await index.check() == []
        journal.put([make_chunk(2, "fox sun", vector=vector)])
        await catch_up(index, journal)
        assert ids(await index.search(ask("fox"))) == [1, 2, 3]
        assert await index.check() == []

    async def test_union_has_both_scores(self, index: Index, journal: Journal) -> None:
        """Each arm brings its best, and every candidate has the scores of both arms."""
        journal.put([make_chunk(1, "fox", vector=axis(1)), make_chunk(2, "sun", vector=axis(2))])
        journal.put([make_chunk(3, "fox fox"), make_chunk(4, "moon", vector=axis(4))])
        await catch_up(index, journal)
        candidates = await index.search(ask("fox", axis(2), limit=1))
        assert ids(candidates) == [2, 3]
        assert candidates.words[0] == 0.0 < candidates.words[1]
        assert candidates.cosine[0] == pytest.approx(1.0)
        assert np.isnan(candidates.cosine[1])

    async def test_ties_go_to_the_smaller_id(self, index: Index, journal: Journal) -> None:
        """Equal scores are cut at the limit in the order of ids."""
        journal.put(make_chunk(number, "same", vector=axis(0)) for number in range(50, 0, -1))
        await catch_up(index, journal)
        assert ids(await index.search(ask("same", axis(0), limit=3))) == [1, 2, 3]

    @pytest.mark.parametrize(
        "probe", [ask(), ask(""), ask("fox", axis(0), limit=0), ask("…!"), ask("unheard of")]
    )
    async def test_nothing_to_look_for(self, index: Index, journal: Journal, probe: Probe) -> None:
        """No words and no vector, no room, or no known term: no candidates."""
        journal.put([make_chunk(1, "fox", vector=axis(0))])
        await catch_up(index, journal)
        candidates = await index.search(probe)
        assert (ids(candidates), candidates.total) == ([], 1)

    async def test_filter_comes_first(self, index: Index, journal: Journal) -> None:
        """The filter is inside both arms: a row that is allowed is found however many better ones are not."""
        journal.put(
            make_chunk(n, "fox " * (200 - n), vector=axis(0), metadata={"page": n}) for n in range(100)
        )
        journal.put([make_chunk(500, "a fox in a long long text", vector=unit(axis(0) + axis(1)))])
        await catch_up(index, journal)
        hidden = await index.search(ask("fox", axis(0), where=Not(Exists(("page",))), limit=1))
        assert (ids(hidden), hidden.total, hidden.terms[0].documents) == ([500], 101, 101)

    @pytest.mark.parametrize(
        "where",
        [
            Eq("kind", "message"),
            In("author", ("ann", "ghost")),
            Not(Eq("thread", "t1")),
            Between("sequence", 1, 3),
            Overlaps(NOON, NOON + timedelta(hours=1)),
            Overlaps(end=NOON),
            Exists(("tags",)),
            Eq(("tags",), "b"),
            Eq(("deep", "er"), 1),
            Between(("when",), NOON - timedelta(hours=1), NOON + timedelta(hours=1)),
            Between("recorded", low=NOON),
            And((Eq("kind", "page"), Or((Eq(("n",), True), Eq(("n",), 2))))),
            Or(),
            In("source", ()),
        ],
    )
    async def test_filters(self, index: Index, journal: Journal, where: Filter) -> None:
        """A filter admits exactly the rows that `matches` admits."""
        hour = timedelta(hours=1)
        journal.put(
            [
                make_chunk(1, "fox", kind="message", author="ann", thread="t1", sequence=1),
                make_chunk(2, "fox", author="Ann", sequence=3, occurred=Period(NOON, NOON)),
                make_chunk(3, "fox", metadata={"tags": ["a", "b"], "n": True}),
                make_chunk(4, "fox", metadata={"tags": [], "n": 1, "deep": {"er": 1.0}}),
                make_chunk(5, "fox", metadata={"when": "2024-05-01T14:00:00+02:00", "deep": {"er": "1"}}),
                make_chunk(6, "fox", metadata={"tags": None, "n": 2}, recorded=NOON + hour),
                make_chunk(7, "fox", occurred=Period(NOON - hour, NOON), kind="message", sequence=0),
            ]
        )
        await catch_up(index, journal)
        expected = [chunk.chunk.id for chunk in journal.live() if matches(where, chunk.row())]
        assert ids(await index.search(ask("fox", where=where))) == expected

    async def test_replacing_and_removing(self, index: Index, journal: Journal) -> None:
        """An older version is never found, nor counted; nor is what was removed."""
        journal.put(make_chunk(number, "old fox") for number in range(1, 6))
        await catch_up(index, journal)
        journal.replace([1], [make_chunk(2, "new sun"), make_chunk(6, "new fox")])
        await catch_up(index, journal)
        old, new = await index.search(ask("old")), await index.search(ask("new"))
        assert (ids(old), ids(new)) == ([3, 4, 5], [2, 6])
        assert (new.total, new.terms[0].documents, old.terms[0].documents) == (5, 2, 3)

    async def test_vectors_may_come_later(self, index: Index, journal: Journal) -> None:
        """A chunk is found by words at once, and by its vector when that is there."""
        journal.put([make_chunk(1, "fox"), make_chunk(2, "fox")])
        await catch_up(index, journal)
        assert ids(await index.search(ask(vector=axis(1)))) == []
        journal.put([make_chunk(2, "fox", vector=axis(1))])
        await catch_up(index, journal)
        candidates = await index.search(ask("fox", axis(1)))
        assert ids(candidates) == [1, 2]
        assert np.isnan(candidates.cosine).tolist() == [True, False]

    async def test_applying_twice_is_harmless(self, index: Index, journal: Journal) -> None:
        """The same changes again, in parts or as a whole, alter nothing."""
        journal.put(make_chunk(number, "fox", vector=axis(number)) for number in range(20))
        journal.remove(range(5))
        changes = await journal.changes_since(0, limit=100)
        await index.apply(changes)
        first = await index.search(ask("fox", axis(9)))
        await index.apply(changes[:7])
        await index.apply(changes)
        await index.apply([])
        again = await index.search(ask("fox", axis(9)))
        assert index.applied_sequence() == changes[-1].sequence
        assert (ids(first), first.total) == (ids(again), again.total)
        assert np.array_equal(first.words, again.words)

    async def test_score(self, index: Index, journal: Journal) -> None:
        """Scores of chosen chunks equal those of a search; unknown and forbidden ids are left out."""
        journal.put(
            make_chunk(n, "fox " * n, vector=axis(n), metadata={"even": n % 2 == 0}) for n in range(1, 9)
        )
        await catch_up(index, journal)
        probe = ask("fox", axis(4), where=Eq(("even",), True))
        candidates = await index.search(probe)
        scored = await index.score(np.array([6, 4, 4, 3, 99]), probe)
        assert ids(scored) == [4, 6]
        selection = np.isin(candidates.ids, [4, 6])
        assert np.array_equal(scored.words, candidates.words[selection])
        assert np.array_equal(scored.cosine, candidates.cosine[selection])
        assert (scored.terms, scored.total) == (candidates.terms, candidates.total)
        assert ids(await index.score(np.array([], np.int64), probe)) == []

    async def test_a_probe_is_asked_again(self, index: Index, journal: Journal) -> None:
        """A probe that was asked before sees what was added and removed since."""
        probe, every = ask("fox"), np.array([1, 2, 3])
        journal.put([make_chunk(1, "fox"), make_chunk(2, "fox")])
        await catch_up(index, journal)
        assert ids(await index.search(probe)) == [1, 2]
        journal.remove([1])
        journal.put([make_chunk(3, "fox")])
        await catch_up(index, journal)
        again = await index.score(every, probe)
        assert (ids(again), again.terms[0].documents) == ([2, 3], 2)

    async def test_frequencies_of_sources_count(self, index: Index, journal: Journal) -> None:
        """The weight of a term is its idf in the named sources, if the query names any."""
        texts = {1: ("a", "fox sun"), 2: ("a", "fox sea"), 3: ("b", "sun moon"), 4: ("b", "sun sea")}
        journal.put([make_chunk(number, text, source=name) for number, (name, text) in texts.items()])
        await catch_up(index, journal)
        probe = ask("fox sun")
        plain = await index.search(probe)
        candidates = await index.search(replace(probe, sources=("a", "unknown")))
        assert [term.source_idf for term in plain.terms] == [None, None]
        assert [term.source_idf for term in candidates.terms] == [math.log(1.2), math.log(2.0)]
        assert [term.idf for term in candidates.terms] == [term.idf for term in plain.terms]
        assert plain.words[1] > plain.words[2]
        assert candidates.words[1] < candidates.words[2]
        scored = await index.score(candidates.ids, replace(probe, sources=("a",)))
        assert scored.words.tolist() == candidates.words.tolist()
        assert [term.weight for term in candidates.terms] == [term.source_idf for term in candidates.terms]
        journal.remove([2])
        await catch_up(index, journal)
        fewer = await index.search(replace(probe, sources=("a",)))
        assert [term.source_idf for term in fewer.terms] == [math.log(4 / 3)] * 2

    async def test_long_texts_lose_less_in_sources(self, index: Index, journal: Journal) -> None:
        """In named sources, the length of a text divides its score by less."""
        texts = {1: "fox", 2: f"fox {' '.join(['sun'] * 30)}", 3: "fox sea", 4: "moon"}
        journal.put([make_chunk(number, text, source="a") for number, text in texts.items()])
        await catch_up(index, journal)
        everywhere = await index.search(ask("fox"))
        inside = await index.search(replace(ask("fox"), sources=("a",)))
        assert ids(inside) == ids(everywhere) == [1, 2, 3]
        assert inside.words[1] / inside.words[0] > 1.2 * everywhere.words[1] / everywhere.words[0]

    async def test_terms_are_searched_as_they_are(self, index: Index, journal: Journal) -> None:
        """Given terms replace those of the words: a whole is found without its parts."""
        journal.put([make_chunk(1, "zq-13"), make_chunk(2, "13"), make_chunk(3, "zq")])
        await catch_up(index, journal)
        assert ids(await index.search(ask("zq-13"))) == [1, 2, 3]
        candidates = await index.search(replace(ask("zq-13"), terms=("zq-13",)))
        assert (ids(candidates), [term.term for term in candidates.terms]) == ([1], ["zq-13"])

    async def test_check_names_each_difference(self, index: Index, journal: Journal) -> None:
        """Rows that the history does not explain are named with what is wrong."""
        journal.put(make_chunk(number, "fox", vector=axis(number)) for number in range(1, 6))
        await catch_up(index, journal)
        journal.corrupt([1], [make_chunk(2, "other", vector=axis(2)), make_chunk(3, "fox", vector=axis(4))])
        journal.corrupt([], [make_chunk(9, "never told")])
        differences = [(difference.chunk, difference.problem) for difference in await index.check()]
        assert differences == [(1, "ghost"), (2, "stale"), (3, "stale"), (9, "missing")]

    async def test_check_knows_what_is_yet_to_come(self, index: Index, journal: Journal) -> None:
        """What the records changed after the last applied change is not a difference."""
        journal.put(make_chunk(number, "fox") for number in range(1, 5))
        await catch_up(index, journal)
        journal.replace([1], [make_chunk(2, "another fox"), make_chunk(7, "new")])
        assert await index.check() == []

    async def test_rebuild(self, index: Index, journal: Journal) -> None:
        """Building anew gives the same answers, and takes in what had not been applied."""
        journal.put(make_chunk(number, "fox", vector=axis(number)) for number in range(20))
        await catch_up(index, journal)
        before = await index.search(ask("fox"))
        journal.remove([19])
        steps: list[tuple[int, int]] = []
        await index.rebuild(lambda _, done, total: steps.append((done, total)))
        after = await index.search(ask("fox"))
        assert index.applied_sequence() == await journal.last_sequence()
        assert (before.total, after.total) == (20, 19)
        assert ids(before) == ids(after)
        assert steps[-1][0] == 19
        assert await index.check() == []

    async def test_purge(self, index: Index, journal: Journal) -> None:
        """What is live stays, the rest leaves."""
        journal.put(make_chunk(number, "fox", vector=axis(number)) for number in range(20))
        await catch_up(index, journal)
        journal.remove(range(10))
        await catch_up(index, journal)
        await index.purge()
        assert ids(await index.search(ask("fox", limit=100))) == list(range(10, 20))
        status = await index.status()
        assert (status.chunks, status.vectors) == (10, 10)

    async def test_hostile_values(self, index: Index, journal: Journal) -> None:
        """Lone surrogates, huge numbers, deep and odd metadata neither fail nor disturb others."""
        odd: dict[str, Json] = {
            "\ud800": "\udfff",
            "": {"": 10**30},
            "n": float("inf"),
            "m": -(2**63),
            "l": [[1, [None]], {}],
            "t": "9999-12-31T23:59:59-05:00",
        }
        journal.put(
            [make_chunk(1, "\ud800 fox \x00", title="\udfff", metadata=odd), make_chunk(2**40, "fox")]
        )
        await catch_up(index, journal)
        assert ids(await index.search(ask("fox"))) == [1, 2**40]
        for where in (Eq(("\ud800",), "\udfff"), Eq(("", ""), 10**30), Between(("n",), 1), Eq(("l",), 1)):
            assert ids(await index.search(ask("fox", where=where))) == [1]

    async def test_reopening(self, open_index: OpenIndex, index: Index, journal: Journal) -> None:
        """A second index over the same records answers the same."""
        journal.put(make_chunk(number, f"fox {number}", vector=axis(number)) for number in range(30))
        await catch_up(index, journal)
        await index.rebuild()
        journal.remove([0, 1])
        await catch_up(index, journal)
        again = await open_index(journal)
        await catch_up(again, journal)
        probe = ask("fox 7", axis(7))
        first, second = await index.search(probe), await again.search(probe)
        await again.close()
        assert ids(first) == ids(second)
        assert np.array_equal(first.words, second.words)

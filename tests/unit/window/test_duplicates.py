"""Duplicates in a window are the same as those found by comparing all pairs of texts."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_window_properties import Corpus
from tests.repetitions import tries

from conspectus.window.duplicates import MIN_SHARE, MIN_WORDS, SAMPLE_STEP, Candidate, SeenTexts

WORDS = ["alpha", "beta", "gamma", "delta", "one", "two", "3", "44", "five", "eps", "zeta"]


class RepeatingCorpus(Corpus):
    """Documents of a few sentences that come again and again, and of texts with a few words changed."""

    def text(self) -> str:
        chance = self.chance
        if not hasattr(self, "texts"):
            self.texts: list[str] = []
            self.sentences = [
                " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 30))) for _ in range(8)
            ]
        if self.texts and chance.random() < 0.5:
            words = chance.choice(self.texts).split(" ")
            for _ in range(chance.choice((0, 1, 1, 2, 4))):
                words[chance.randrange(len(words))] = chance.choice(("x", "7", "alpha", "new"))
            text = " ".join(words[chance.randrange(len(words)) if chance.random() < 0.4 else 0 :])
        else:
            text = chance.choice((" ", "\n", ". ")).join(
                chance.choices(self.sentences, k=chance.randint(1, 8))
            )
        self.texts.append(text)
        return text


class ComparedTexts:
    """The same as SeenTexts, by the definition: every shown text is compared."""

    def __init__(self) -> None:
        self.shown: list[tuple[Candidate, bool]] = []

    def rank_of(self, candidate: Candidate) -> int | None:
        for other, _ in self.shown:
            if other.same == candidate.same:
                return other.rank
        text = f" {' '.join(candidate.words)} "
        for other, is_complete in self.shown:
            comparable = is_complete and not candidate.blank and other.author == candidate.author
            if comparable and text in f" {' '.join(other.words)} ":
                return other.rank
        return None

    def near(self, candidate: Candidate) -> tuple[int, float] | None:
        texts = [
            other for other, is_complete in self.shown if is_complete and other.author == candidate.author
        ]
        sample = candidate.words[::SAMPLE_STEP]
        shown_words = {word for other in texts for word in other.words}
        if candidate.hit.document.kind != "page" or len(candidate.words) < MIN_WORDS:
            return None
        if sum(word in shown_words for word in sample) < MIN_SHARE * len(sample):
            return None
        for name in dict.fromkeys(other.hit.document.id for other in texts):
            page = [other for other in texts if other.hit.document.id == name]
            if name == candidate.hit.document.id or page[0].hit.document.kind != "page":
                continue
            runs = {run for other in page for run in other.runs}
            share = sum(run in runs for run in candidate.runs) / len(candidate.runs)
            words = {word for other in page for word in other.words}
            if share >= MIN_SHARE and not any(
                any(map(str.isdigit, word)) for word in {*candidate.words} - words
            ):
                common = [len({*candidate.runs} & {*other.runs}) for other in page]
                return page[common.index(max(common))].rank, share
        return None


@settings(max_examples=tries(150))
@given(st.integers(0, 2**32), st.integers(1, 40), st.booleans())
def test_the_same_texts_are_refused_as_by_comparing_each_with_each(seed, maximum, repeating):
    chance = random.Random(seed)
    corpus = (RepeatingCorpus if repeating else Corpus)(chance, longest=1200)
    seen, compared = SeenTexts(), ComparedTexts()
    for rank, hit in enumerate(corpus.hits(maximum)):
        candidate = Candidate(rank, hit)
        assert seen.rank_of(candidate) == compared.rank_of(candidate)
        near = seen.find_near_duplicate(candidate)
        assert (None if near is None else (near.near, near.share)) == compared.near(candidate)
        if near is None or chance.random() < 0.3:
            is_complete = chance.random() < 0.9
            seen.add(candidate, is_complete=is_complete)
            compared.shown.append((candidate, is_complete))

"""Learn who answers whom from channels whose messages people linked, and check on channels left out.

    PYTHONPATH=. python scripts/train_replies.py DIRECTORY [--write]

DIRECTORY holds `messages.jsonl` and `links.jsonl`; the channels below `dev/` are learnt from. The shipped
weights come from `irc_disentanglement` (Kummerfeld et al., ACL 2019, CC BY 4.0): ten days of one channel.

For each message a probability is given to every remembered message and to its beginning a conversation; two
sums of oblivious trees, one for either, are boosted together to raise that of what people chose. Some figures
depend on the links found before, so everything is learnt ROUNDS times, each time with the links of a judge
that has not seen the channel. `channel_variants.py` makes up other kinds of channels: with seconds, slower,
without times, with fewer names at the beginning of messages, and quiet ones.

Without `--write` only the figures of channels left out are printed; with it the weights are written, too.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.threads import JudgedChannel, linked, measured, outcome, read_judged_channels
from channel_variants import KINDS, Kind, origin, variants
from numpy.typing import NDArray

from conspectus.text.replies import Linker
from conspectus.text.replies.features import features
from conspectus.text.replies.forest import Judge, judge, tabulate
from conspectus.text.replies.linker import seconds
from conspectus.text.replies.message_parsing import read
from conspectus.text.replies.past import Past

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Bins = NDArray[np.uint8]
Weights = dict[str, dict[str, Any]]

WEIGHTS = Path(__file__).parents[1] / "src/conspectus/text/replies/weights.json"
ANSWER_FIGURES = """
between turns gap gap_to_pace asks commands length i_name_them i_name_another they_name_me they_name_another
same_addressee later_to_them same_author my_last later_by_them later_by_me told_since talks_to_me answers_me
same_partner similar rarest later_in_thread thread_size shared_in_thread my_thread mine_in_thread
theirs_in_thread my_length i_ask i_react my_silence remembered lately open
"""
START_FIGURES = """
i_name stranger my_length i_ask i_greet i_appeal i_react my_silence my_gap channel_gap channel_gap_to_pace
mine newest_mine left_behind remembered lately voices open newest_asks newest_alone
"""
ANSWER, START = ANSWER_FIGURES.split(), START_FIGURES.split()
MEMORY = 100
FOLDS = 5
ROUNDS = 3
TREES = 160
FEWER_TREES = 40
DEPTHS = (5, 3)
RATE = 0.15
SHARE_OF_FIGURES = 0.5
SHARE_OF_MESSAGES = 0.5
PENALTY = 3.0
MIN_WEIGHT = 2.0
BINS = 48
NEGLIGIBLE = 0.002
SETTLED = 25
HOPELESS = 2e-4
SEED = 7
HIGHEST = 1e30


@dataclass(frozen=True)
class Sample:
    """A judged message: figures of what it may answer and of its being a start, and which of them is true."""

    answer: Floats
    start: Floats
    answered: Truths
    starts: bool
    weight: float


@dataclass(frozen=True)
class Grown:
    """One tree over binned figures."""

    features: list[int]
    bins: list[int]
    leaves: Floats

    def values(self, binned: Bins) -> Floats:
        leaf = np.zeros(binned.shape[1], dtype=np.int64)
        for feature, most in zip(self.features, self.bins, strict=True):
            leaf = leaf * 2 + (binned[feature] > most)
        found: Floats = self.leaves[leaf]
        return found


def replayed(channel: JudgedChannel, chooser: Judge | None, weight: float) -> Iterator[Sample]:
    """The judged messages of a channel, each with the links that the judge found before it."""
    past = Past(MEMORY)
    for place, said in enumerate(channel.utterances):
        if said.system:
            continue
        reading, at = read(said.text, past.people, past.usage), seconds(said.at)
        answers = None
        if len(past):
            found = features(past, reading, said.author, at)
            chosen = chooser.choose(found, len(past))[0] if chooser else None
            answers = None if chosen is None else past.keys[chosen]
            true = (channel.answers or {}).get(place, frozenset())
            answered = np.array([int(key) in true for key in past.keys])
            if answered.any() or place in true:
                yield Sample(
                    tabulate(found.answer, ANSWER, len(past)),
                    tabulate(found.start, START, 1)[:, 0],
                    answered,
                    place in true,
                    weight,
                )
        past.add(str(place), said.author, at, reading=reading, answers=answers)


def learn(samples: Sequence[Sample], trees: int = TREES) -> Weights:
    """Boost both forests on the samples."""
    chance = np.random.default_rng(SEED)
    tables = (
        np.concatenate([one.answer for one in samples], axis=1),
        np.array([one.start for one in samples]).T,
    )
    edges = [_edges(table) for table in tables]
    answer, start = (_binned(table, each) for table, each in zip(tables, edges, strict=True))
    owner = np.repeat(np.arange(len(samples)), [one.answer.shape[1] for one in samples])
    first = np.searchsorted(owner, np.arange(len(samples)))
    true = np.concatenate([one.answered for one in samples]), np.array([one.starts for one in samples])
    weight = np.array([one.weight for one in samples])
    rated, begun = np.zeros(len(owner)), np.zeros(len(samples))
    grown: tuple[list[Grown], list[Grown]] = [], []
    for number in range(trees):
        slopes, curves = _slopes(rated, begun, owner=owner, first=first, true=true)
        if number == SETTLED:
            kept = (curves[0] > HOPELESS) | true[0] | (np.diff(owner, append=-1) != 0)
            answer, owner, rated, true = answer[:, kept], owner[kept], rated[kept], (true[0][kept], true[1])
            first = np.searchsorted(owner, np.arange(len(samples)))
            slopes, curves = _slopes(rated, begun, owner=owner, first=first, true=true)
        used = chance.random(len(samples)) < SHARE_OF_MESSAGES
        rows = np.flatnonzero(used[owner] & ((curves[0] > NEGLIGIBLE) | true[0]))
        picked = (rows, weight[owner[rows]]), (np.flatnonzero(used), weight[used])
        for side, binned in enumerate((answer, start)):
            at, share = picked[side]
            tree = _grow(
                binned[:, at],
                slopes[side][at] * share,
                curves[side][at] * share,
                depth=DEPTHS[side],
                chance=chance,
            )
            grown[side].append(tree)
        rated += grown[0][-1].values(answer)
        begun += grown[1][-1].values(start)
    return {
        "answer": _written(ANSWER, grown[0], edges[0]),
        "start": _written(START, grown[1], edges[1]),
    }


def _slopes(
    rated: Floats, begun: Floats, *, owner: Integers, first: Integers, true: tuple[Truths, Truths]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """The first and second derivatives of the negative log probability of the true choices."""
    highest = np.maximum(np.maximum.reduceat(rated, first), begun)
    odds, start_odds = np.exp(rated - highest[owner]), np.exp(begun - highest)
    total = np.add.reduceat(odds, first) + start_odds
    right = np.add.reduceat(odds * true[0], first) + start_odds * true[1]
    chosen, started = odds / total[owner], start_odds / total
    slopes = chosen - odds * true[0] / right[owner], started - start_odds * true[1] / right
    return slopes, (chosen * (1 - chosen), started * (1 - started))


def _grow(binned: Bins, slope: Floats, curve: Floats, *, depth: int, chance: np.random.Generator) -> Grown:
    """A tree whose every level asks the question that helps most over all its leaves."""
    figures = np.sort(chance.permutation(len(binned))[: max(1, int(len(binned) * SHARE_OF_FIGURES))])
    leaf = np.zeros(binned.shape[1], dtype=np.int64)
    features, bins = [], []
    for level in range(depth):
        best = max((_split(binned[figure], leaf, 1 << level, (slope, curve)), figure) for figure in figures)
        (_, most), figure = best
        features.append(int(figure))
        bins.append(most)
        leaf = leaf * 2 + (binned[figure] > most)
    slopes = np.bincount(leaf, weights=slope, minlength=1 << depth)
    curves = np.bincount(leaf, weights=curve, minlength=1 << depth)
    return Grown(features, bins, -RATE * slopes / (curves + PENALTY))


def _split(
    figure: Bins, leaf: Integers, leaves: int, derivatives: tuple[Floats, Floats]
) -> tuple[float, int]:
    """The best place to split all leaves by one figure, with what it gains."""
    cell = leaf * (BINS + 1) + figure
    under = [
        np.bincount(cell, weights=each, minlength=leaves * (BINS + 1)).reshape(leaves, -1).cumsum(axis=1)
        for each in derivatives
    ]
    over = [each[:, -1:] - each for each in under]
    gain = sum(slope**2 / (curve + PENALTY) for slope, curve in (under, over))
    allowed = ((under[1] > MIN_WEIGHT) & (over[1] > MIN_WEIGHT)).any(axis=0)
    gains = np.where(allowed, np.sum(gain, axis=0), -np.inf)
    return float(gains.max()), int(gains.argmax())


def _edges(table: Floats) -> list[Floats]:
    """Between which values each figure can be split."""
    return [_between(np.unique(row), row) for row in table]


def _between(values: Floats, row: Floats) -> Floats:
    if len(values) <= BINS:
        found: Floats = (values[1:] + values[:-1]) / 2
        return found
    return np.unique(np.quantile(row, np.linspace(0, 1, BINS + 1)[1:-1]))


def _binned(table: Floats, edges: Sequence[Floats]) -> Bins:
    return np.array(
        [np.searchsorted(each, row, side="left") for row, each in zip(table, edges, strict=True)],
        dtype=np.uint8,
    )


def _written(names: Sequence[str], trees: Sequence[Grown], edges: Sequence[Floats]) -> dict[str, Any]:
    """A forest as the package reads it."""
    over = [
        [_over(edges[at], most) for at, most in zip(each.features, each.bins, strict=True)] for each in trees
    ]
    return {
        "names": names,
        "features": [each.features for each in trees],
        "thresholds": over,
        "leaves": [each.leaves.round(5).tolist() for each in trees],
    }


def _over(edges: Floats, most: int) -> float:
    return float(edges[most]) if most < len(edges) else HIGHEST


def cross_fitted(kinds: Sequence[Kind]) -> dict[str, Judge]:
    """For each channel a judge that has not seen it, in any kind."""
    names = [channel.name for channel in kinds[0][1]]
    judges: dict[str, Judge] = {}
    for turn in range(ROUNDS):
        samples = sampled(kinds, judges)
        for fold in (names[start::FOLDS] for start in range(FOLDS)):
            seen = [one for name in names if name not in fold for one in samples[name]]
            judges |= dict.fromkeys(fold, judge(learn(seen, TREES if turn == ROUNDS - 1 else FEWER_TREES)))
        print(f"round {turn + 1}:", *figures(kinds[0][1], judges), flush=True)
    return judges


def sampled(kinds: Sequence[Kind], judges: Mapping[str, Judge]) -> dict[str, list[Sample]]:
    """The samples of each channel, of all its kinds."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for weight, channels in kinds:
        for channel in channels:
            samples[origin(channel.name)] += replayed(channel, judges.get(origin(channel.name)), weight)
    return samples


def figures(channels: Sequence[JudgedChannel], judges: Mapping[str, Judge]) -> Iterator[str]:
    """How well each channel is linked by its judge."""
    found = [
        outcome(each, linked(each.utterances, Linker(judge=judges[origin(each.name)]))) for each in channels
    ]
    reached = measured(found)
    yield f"link F {reached['links']['f1']:.1f}, one-to-one {reached['one_to_one']:.1f},"
    yield f"exact match {reached['exact_match_f1']:.1f}, information kept {reached['information_kept']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    arguments = parser.parse_args()
    channels = [each for each in read_judged_channels(arguments.directory) if each.name.startswith("dev/")]
    kinds = variants(channels)
    judges = cross_fitted(kinds)
    for name, (_, made) in zip(KINDS, kinds, strict=True):
        print(f"left out, {name}:", *figures(made, judges), flush=True)
    if arguments.write:
        learnt = learn([one for each in sampled(kinds, judges).values() for one in each])
        WEIGHTS.write_text(json.dumps(learnt, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Learn who answers whom from channels whose messages people linked, and check on channels left out.

    python -m scripts.train_replies DIRECTORY [--write]

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
from numpy.typing import NDArray
from scripts.channel_variants import KINDS, Kind, make_variants, origin_of

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
ANSWER_NAMES, START_NAMES = ANSWER_FIGURES.split(), START_FIGURES.split()
MAX_REMEMBERED_MESSAGES = 100
FOLDS = 5
ROUNDS = 3
TREES = 160
FEWER_TREES = 40
DEPTHS = (5, 3)
LEARNING_RATE = 0.15
SHARE_OF_FIGURES = 0.5
SHARE_OF_MESSAGES = 0.5
L2_PENALTY = 3.0
MIN_WEIGHT = 2.0
MAX_BINS = 48
MIN_CURVATURE = 0.002
PRUNING_TREE = 25
MIN_KEPT_CURVATURE = 2e-4
SEED = 7
NO_THRESHOLD = 1e30


@dataclass(frozen=True)
class Sample:
    """A judged message: figures of what it may answer and of its being a start, and which of them is true."""

    answer: Floats
    start: Floats
    answered: Truths
    is_start: bool
    weight: float


@dataclass(frozen=True)
class Tree:
    """One tree over binned figures."""

    features: list[int]
    bins: list[int]
    leaves: Floats

    def values(self, binned: Bins) -> Floats:
        leaf = np.zeros(binned.shape[1], dtype=np.int64)
        for feature, highest_bin in zip(self.features, self.bins, strict=True):
            leaf = leaf * 2 + (binned[feature] > highest_bin)
        values: Floats = self.leaves[leaf]
        return values


def replay_channel(channel: JudgedChannel, chooser: Judge | None, weight: float) -> Iterator[Sample]:
    """Yield the judged messages of a channel, each with the links that the judge gave before it."""
    past = Past(MAX_REMEMBERED_MESSAGES)
    for position, utterance in enumerate(channel.utterances):
        if utterance.system:
            continue
        reading, instant = read(utterance.text, past.people, past.usage), seconds(utterance.at)
        answers = None
        if len(past):
            figures = features(past, reading, utterance.author, instant)
            choice = chooser.choose(figures, len(past))[0] if chooser else None
            answers = None if choice is None else past.keys[choice]
            answered_positions = (channel.answers or {}).get(position, frozenset())
            answered = np.array([int(key) in answered_positions for key in past.keys])
            if answered.any() or position in answered_positions:
                yield Sample(
                    tabulate(figures.answer, ANSWER_NAMES, len(past)),
                    tabulate(figures.start, START_NAMES, 1)[:, 0],
                    answered,
                    position in answered_positions,
                    weight,
                )
        past.add(str(position), utterance.author, instant, reading=reading, answers=answers)


def train_forests(samples: Sequence[Sample], trees: int = TREES) -> Weights:
    """Boost both forests on the samples."""
    chance = np.random.default_rng(SEED)
    tables = (
        np.concatenate([sample.answer for sample in samples], axis=1),
        np.array([sample.start for sample in samples]).T,
    )
    edges = [_split_points(table) for table in tables]
    answer, start = (_to_bins(table, points) for table, points in zip(tables, edges, strict=True))
    owner = np.repeat(np.arange(len(samples)), [sample.answer.shape[1] for sample in samples])
    first = np.searchsorted(owner, np.arange(len(samples)))
    truths = (
        np.concatenate([sample.answered for sample in samples]),
        np.array([sample.is_start for sample in samples]),
    )
    weight = np.array([sample.weight for sample in samples])
    answer_scores, start_scores = np.zeros(len(owner)), np.zeros(len(samples))
    forests: tuple[list[Tree], list[Tree]] = [], []
    for number in range(trees):
        slopes, curves = _derivatives(answer_scores, start_scores, owner=owner, first=first, truths=truths)
        if number == PRUNING_TREE:
            is_kept = (curves[0] > MIN_KEPT_CURVATURE) | truths[0] | (np.diff(owner, append=-1) != 0)
            answer, owner, answer_scores, truths = (
                answer[:, is_kept],
                owner[is_kept],
                answer_scores[is_kept],
                (truths[0][is_kept], truths[1]),
            )
            first = np.searchsorted(owner, np.arange(len(samples)))
            slopes, curves = _derivatives(
                answer_scores, start_scores, owner=owner, first=first, truths=truths
            )
        is_used = chance.random(len(samples)) < SHARE_OF_MESSAGES
        rows = np.flatnonzero(is_used[owner] & ((curves[0] > MIN_CURVATURE) | truths[0]))
        selected = (rows, weight[owner[rows]]), (np.flatnonzero(is_used), weight[is_used])
        for side, binned in enumerate((answer, start)):
            columns, share = selected[side]
            tree = _grow_tree(
                binned[:, columns],
                slopes[side][columns] * share,
                curves[side][columns] * share,
                depth=DEPTHS[side],
                chance=chance,
            )
            forests[side].append(tree)
        answer_scores += forests[0][-1].values(answer)
        start_scores += forests[1][-1].values(start)
    return {
        "answer": _forest_json(ANSWER_NAMES, forests[0], edges[0]),
        "start": _forest_json(START_NAMES, forests[1], edges[1]),
    }


def _derivatives(
    answer_scores: Floats,
    start_scores: Floats,
    *,
    owner: Integers,
    first: Integers,
    truths: tuple[Truths, Truths],
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return the first and second derivatives of the negative log probability of the true choices."""
    highest = np.maximum(np.maximum.reduceat(answer_scores, first), start_scores)
    odds, start_odds = np.exp(answer_scores - highest[owner]), np.exp(start_scores - highest)
    total = np.add.reduceat(odds, first) + start_odds
    true_odds = np.add.reduceat(odds * truths[0], first) + start_odds * truths[1]
    answer_probability, start_probability = odds / total[owner], start_odds / total
    slopes = (
        answer_probability - odds * truths[0] / true_odds[owner],
        start_probability - start_odds * truths[1] / true_odds,
    )
    return slopes, (
        answer_probability * (1 - answer_probability),
        start_probability * (1 - start_probability),
    )


def _grow_tree(
    binned: Bins, slope: Floats, curve: Floats, *, depth: int, chance: np.random.Generator
) -> Tree:
    """Return a tree whose every level asks the question that helps most over all its leaves."""
    figures = np.sort(chance.permutation(len(binned))[: max(1, int(len(binned) * SHARE_OF_FIGURES))])
    leaf = np.zeros(binned.shape[1], dtype=np.int64)
    features, bins = [], []
    for level in range(depth):
        best = max(
            (_best_split(binned[figure], leaf, 1 << level, (slope, curve)), figure) for figure in figures
        )
        (_, highest_bin), figure = best
        features.append(int(figure))
        bins.append(highest_bin)
        leaf = leaf * 2 + (binned[figure] > highest_bin)
    slopes = np.bincount(leaf, weights=slope, minlength=1 << depth)
    curves = np.bincount(leaf, weights=curve, minlength=1 << depth)
    return Tree(features, bins, -LEARNING_RATE * slopes / (curves + L2_PENALTY))


def _best_split(
    figure: Bins, leaf: Integers, leaves: int, derivatives: tuple[Floats, Floats]
) -> tuple[float, int]:
    """Return the best split of all leaves by one figure: its gain and its bin."""
    cell = leaf * (MAX_BINS + 1) + figure
    sums_below = [
        np.bincount(cell, weights=derivative, minlength=leaves * (MAX_BINS + 1))
        .reshape(leaves, -1)
        .cumsum(axis=1)
        for derivative in derivatives
    ]
    sums_above = [sums[:, -1:] - sums for sums in sums_below]
    gain = sum(slope**2 / (curve + L2_PENALTY) for slope, curve in (sums_below, sums_above))
    is_allowed = ((sums_below[1] > MIN_WEIGHT) & (sums_above[1] > MIN_WEIGHT)).any(axis=0)
    gains = np.where(is_allowed, np.sum(gain, axis=0), -np.inf)
    return float(gains.max()), int(gains.argmax())


def _split_points(table: Floats) -> list[Floats]:
    """Return the points between which each figure can be split."""
    return [_midpoints(np.unique(row), row) for row in table]


def _midpoints(values: Floats, row: Floats) -> Floats:
    if len(values) <= MAX_BINS:
        points: Floats = (values[1:] + values[:-1]) / 2
        return points
    return np.unique(np.quantile(row, np.linspace(0, 1, MAX_BINS + 1)[1:-1]))


def _to_bins(table: Floats, edges: Sequence[Floats]) -> Bins:
    return np.array(
        [np.searchsorted(points, row, side="left") for row, points in zip(table, edges, strict=True)],
        dtype=np.uint8,
    )


def _forest_json(names: Sequence[str], trees: Sequence[Tree], edges: Sequence[Floats]) -> dict[str, Any]:
    """Return a forest as the package reads it."""
    thresholds = [
        [
            _threshold(edges[feature], highest_bin)
            for feature, highest_bin in zip(tree.features, tree.bins, strict=True)
        ]
        for tree in trees
    ]
    return {
        "names": names,
        "features": [tree.features for tree in trees],
        "thresholds": thresholds,
        "leaves": [tree.leaves.round(5).tolist() for tree in trees],
    }


def _threshold(edges: Floats, highest_bin: int) -> float:
    return float(edges[highest_bin]) if highest_bin < len(edges) else NO_THRESHOLD


def cross_fit(kinds: Sequence[Kind]) -> dict[str, Judge]:
    """Return for each channel a judge that has not seen it, in any kind."""
    names = [channel.name for channel in kinds[0][1]]
    judges: dict[str, Judge] = {}
    for number in range(ROUNDS):
        samples = collect_samples(kinds, judges)
        for fold in (names[start::FOLDS] for start in range(FOLDS)):
            samples_of_others = [sample for name in names if name not in fold for sample in samples[name]]
            judges |= dict.fromkeys(
                fold, judge(train_forests(samples_of_others, TREES if number == ROUNDS - 1 else FEWER_TREES))
            )
        print(f"round {number + 1}:", *report_figures(kinds[0][1], judges), flush=True)
    return judges


def collect_samples(kinds: Sequence[Kind], judges: Mapping[str, Judge]) -> dict[str, list[Sample]]:
    """Return the samples of each channel, of all its kinds."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for weight, channels in kinds:
        for channel in channels:
            samples[origin_of(channel.name)] += replay_channel(
                channel, judges.get(origin_of(channel.name)), weight
            )
    return samples


def report_figures(channels: Sequence[JudgedChannel], judges: Mapping[str, Judge]) -> Iterator[str]:
    """Yield how well each channel is linked by its judge."""
    outcomes = [
        outcome(channel, linked(channel.utterances, Linker(judge=judges[origin_of(channel.name)])))
        for channel in channels
    ]
    scores = measured(outcomes)
    yield f"link F {scores['links']['f1']:.1f}, one-to-one {scores['one_to_one']:.1f},"
    yield f"exact match {scores['exact_match_f1']:.1f}, information kept {scores['information_kept']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    arguments = parser.parse_args()
    channels = [
        channel for channel in read_judged_channels(arguments.directory) if channel.name.startswith("dev/")
    ]
    kinds = make_variants(channels)
    judges = cross_fit(kinds)
    for name, (_, variant_channels) in zip(KINDS, kinds, strict=True):
        print(f"left out, {name}:", *report_figures(variant_channels, judges), flush=True)
    if arguments.write:
        weights = train_forests(
            [sample for samples in collect_samples(kinds, judges).values() for sample in samples]
        )
        WEIGHTS.write_text(json.dumps(weights, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Learn the weights of the confidence, and check each set left out.

    python benchmarks/abstention.py --searches FILE
    PYTHONPATH=. python scripts/train_confidence.py FILE [--write]

FILE has the searches of `benchmarks/abstention.py`. Only sets of `SET_SHARES` are learned from: their
licences allow it. The label is whether one of the ten hits answers the question, and half of the searches
have no answer. The weights are those of a logistic regression on standardised signals. An L2 penalty draws
them to one weight for all signals: which signal tells most depends on the set, that each tells something
does not. Signals with a negative weight are left out, since more of any signal must not be less probable.
Kinds of sets weigh the same. Two sets are left out though their licences allow them: the spans of qmsum are
so long that ten hits nearly always have a part of one, and longmemeval_sample has four questions.

Whether the hits are by the person whom a query names is learned afterwards, from `qmsum_said` alone, with all
other weights fixed: few other questions name somebody.

At last, intercept and slope are fitted once more on the log odds of each set that a model gives which was
learned from the other sets, since a model is too sure of sets that it does not know.

The report shows for each set the AUROC of the best cosine and of a model that is learned without the set, and
the share of searches without an answer that are answered where 95 % of the others are. `--write` writes
`retrieval/confidence_weights.py`.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.abstention import AMONG_FEW, NONE, REMOVED, STORED, Search, area, false_answers, read_searches
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIGNAL_NAMES = ("best_cosine", "cosine_lead", "bm25_lead", "terms_covered", "pairs", "names", "titles")
AUTHOR = "author"
AUTHOR_SET = "qmsum_said"
SET_SHARES: Mapping[str, float] = {
    "beam_100k": 0.6,
    "qmsum_said": 0.4,
    "cookbook_code": 1.0,
    "hotpotqa100": 0.3,
    "mtrag_un": 0.3,
    "rag_blueprint": 0.1,
    "xquad_en": 0.15,
    "xquad_de": 0.15,
    f"beam_100k{AMONG_FEW}": 0.2,
    f"qmsum_said{AMONG_FEW}": 0.2,
    f"cookbook_code{AMONG_FEW}": 0.2,
    f"hotpotqa100{AMONG_FEW}": 0.2,
    f"mtrag_un{AMONG_FEW}": 0.2,
}
"""Sets that are learned from; conversations, lists, documents and few documents have a share of 1 each."""
L2_PENALTY = 0.3
"""Of the squared distance from equal weights. From .3 on, training sets that are left out differ by .1."""
MIN_PENALTY = 1e-6
ROUNDS = 60
WEIGHTS_FILE = Path(__file__).resolve().parents[1] / "src/conspectus/retrieval/confidence_weights.py"


@dataclass(frozen=True)
class Searches:
    """The searches of a set, a row each: signals (NaN: missing), if it is right, where its answers are."""

    signals: Floats
    author: Floats
    is_right: Floats
    answers: NDArray[np.str_]

    def with_answers(self, *answers: str) -> "Searches":
        """Return the searches whose answers are in one of these places."""
        rows = np.isin(self.answers, answers)
        return Searches(self.signals[rows], self.author[rows], self.is_right[rows], self.answers[rows])


@dataclass(frozen=True)
class Model:
    """Weights of the signals above their means, the same of the author, and the intercept."""

    intercept: float
    weights: Floats
    means: Floats
    author_weight: float
    author_mean: float

    def log_odds(self, searches: Searches) -> Floats:
        """Return the log odds of searches; missing signals count as their mean."""
        of_signals = np.nan_to_num(searches.signals - self.means) @ self.weights
        of_author = self.author_weight * np.nan_to_num(searches.author - self.author_mean)
        log_odds: Floats = self.intercept + of_signals + of_author
        return log_odds

    def rescaled(self, intercept: float, slope: float) -> "Model":
        """Return the model with log odds times `slope` plus `intercept`."""
        return Model(
            intercept + slope * self.intercept,
            slope * self.weights,
            self.means,
            slope * self.author_weight,
            self.author_mean,
        )


def by_set(searches: Sequence[Search]) -> dict[str, Searches]:
    """Return the searches of each set as arrays."""
    names = dict.fromkeys(search.set for search in searches)
    return {name: make_searches([search for search in searches if search.set == name]) for name in names}


def make_searches(searches: Sequence[Search]) -> Searches:
    """Return searches as arrays."""
    return Searches(
        np.array([[search.signals.get(name, np.nan) for name in SIGNAL_NAMES] for search in searches]),
        np.array([search.signals.get(AUTHOR, np.nan) for search in searches]),
        np.array([search.is_right for search in searches], dtype=np.float64),
        np.array([search.answers for search in searches]),
    )


def fit_logistic(
    rows: Floats,
    is_right: Floats,
    shares: Floats,
    *,
    penalty: float = 0.0,
    prior: Floats | None = None,
    offset: Floats | float = 0.0,
) -> Floats:
    """Return the coefficients of a logistic regression by Newton's method.

    The first one is that of a column of ones. The penalty is for the squared distance of the others to the
    prior.
    """
    prior = np.zeros(rows.shape[1]) if prior is None else prior
    penalties = np.array([0.0, *np.full(rows.shape[1] - 1, max(penalty, MIN_PENALTY))])
    coefficients = prior
    for _ in range(ROUNDS):
        probability = 1.0 / (1.0 + np.exp(-(rows @ coefficients + offset)))
        gradient = rows.T @ (shares * (probability - is_right)) + penalties * (coefficients - prior)
        curvature = (rows.T * (shares * probability * (1.0 - probability))) @ rows + np.diag(penalties)
        coefficients = coefficients - np.linalg.solve(curvature, gradient)
    return coefficients


def learn(sets: Mapping[str, Searches]) -> Model:
    """Return the model of some sets."""
    paired = {name: sets[name].with_answers(STORED, REMOVED) for name in sets}
    signals = np.concatenate([searches.signals for searches in paired.values()])
    is_right = np.concatenate([searches.is_right for searches in paired.values()])
    shares = share_of_rows(paired)
    is_known = ~np.isnan(signals)
    means = (shares @ np.nan_to_num(signals)) / (shares @ is_known)
    centred = np.nan_to_num(signals - means)
    spread = np.sqrt(shares @ centred**2)
    ones = np.ones(len(is_right))
    total = (centred / spread).sum(axis=1)
    intercept, equal = fit_logistic(np.column_stack([ones, total]), is_right, shares)
    used = np.arange(len(SIGNAL_NAMES))
    while True:
        rows = np.column_stack([ones, centred[:, used] / spread[used]])
        prior = np.array([intercept, *np.full(len(used), equal)])
        learned = fit_logistic(rows, is_right, shares, penalty=L2_PENALTY, prior=prior)
        if (learned[1:] >= 0.0).all():
            break
        used = used[learned[1:] >= 0.0]
    weights = np.zeros(len(SIGNAL_NAMES))
    weights[used] = learned[1:] / spread[used]
    model = Model(float(learned[0]), weights, means, 0.0, 0.0)
    return with_author(model, sets[AUTHOR_SET]) if AUTHOR_SET in sets else model


def share_of_rows(sets: Mapping[str, Searches]) -> Floats:
    """Return the weight of each search; they sum up to 1."""
    parts = [np.full(len(sets[name].is_right), SET_SHARES[name] / len(sets[name].is_right)) for name in sets]
    shares: Floats = np.concatenate(parts) / sum(SET_SHARES[name] for name in sets)
    return shares


def with_author(model: Model, searches: Searches) -> Model:
    """Return the model with the weight of the author, from questions about somebody and somebody else."""
    compared = searches.with_answers(STORED, NONE)
    is_named = ~np.isnan(compared.author)
    author = compared.author[is_named]
    mean = float(author.mean())
    rows = np.column_stack([np.ones(len(author)), author - mean])
    shares = np.full(len(author), 1.0 / len(author))
    offset = model.log_odds(compared)[is_named]
    learned = fit_logistic(rows, compared.is_right[is_named], shares, offset=offset)
    return Model(model.intercept, model.weights, model.means, float(learned[1]), mean)


def family(name: str) -> str:
    """Return what sets of the same texts share: translations, and the same questions among few documents."""
    return name.removesuffix(AMONG_FEW).split("_")[0]


def learn_without(sets: Mapping[str, Searches], name: str) -> Model:
    """Return the model of all sets but those with the texts of one."""
    return learn({other: sets[other] for other in sets if family(other) != family(name)})


def learn_and_calibrate(sets: Mapping[str, Searches]) -> Model:
    """Return the model of the sets, as sure as it is of sets that it does not know."""
    paired = {name: sets[name].with_answers(STORED, REMOVED) for name in sets}
    log_odds = np.concatenate([learn_without(sets, name).log_odds(paired[name]) for name in sets])
    is_right = np.concatenate([searches.is_right for searches in paired.values()])
    rows = np.column_stack([np.ones(len(log_odds)), log_odds])
    fitted = fit_logistic(rows, is_right, share_of_rows(paired))
    return learn(sets).rescaled(float(fitted[0]), float(fitted[1]))


def report(searches: Mapping[str, Searches], training: Mapping[str, Searches]) -> Iterator[str]:
    """Return AUROC and false answers of each set: of the best cosine, and of a model without the set."""
    yield "set, answers, best cosine, confidence learned without the set (AUROC / false answers)"
    for name, of_set in searches.items():
        model = learn_without(training, name)
        for lacking in (REMOVED, NONE):
            compared = of_set.with_answers(STORED, lacking)
            is_answerable = compared.answers == STORED
            if is_answerable.all():
                continue
            scores = (np.nan_to_num(compared.signals[:, 0], nan=-1.0), model.log_odds(compared))
            measured = (
                f"{100 * area(score, is_answerable):.1f} / {100 * false_answers(score, is_answerable):.0f}"
                for score in scores
            )
            yield ", ".join([name, lacking, *measured])


def source_of(model: Model) -> str:
    """Return the source of `retrieval/confidence_weights.py`."""
    head = WEIGHTS_FILE.read_text(encoding="utf-8").partition("INTERCEPT")[0]
    learned = [*zip(SIGNAL_NAMES, model.weights, model.means, strict=True)]
    learned.append((AUTHOR, model.author_weight, model.author_mean))
    lines = [f'    "{name}": Weight({weight:.3f}, {mean:.3f}),' for name, weight, mean in learned if weight]
    return "\n".join(
        [
            f"{head}INTERCEPT: Final = {model.intercept:.3f}",
            "WEIGHTS: Final[Mapping[str, Weight]] = {",
            *lines,
            "}",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("searches", type=Path)
    parser.add_argument("--write", action="store_true", help="write retrieval/confidence_weights.py")
    options = parser.parse_args()
    searches = by_set(read_searches(options.searches))
    training = {name: searches[name] for name in SET_SHARES if name in searches}
    source = source_of(learn_and_calibrate(training))
    print(*report(searches, training), source, sep="\n")
    if options.write:
        WEIGHTS_FILE.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main()

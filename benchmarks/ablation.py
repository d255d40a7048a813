"""Conversations: what each part of a score is worth, on each set, as a table for docs/benchmarks.md."""

import argparse
import asyncio
import sys
from pathlib import Path

from conspectus.evals.ablation import Figures, compare, rankings


def main() -> None:
    """Ask the questions of every set with all parts, without each, with each alone, and by the product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--questions", type=int, default=1_000, help="most of each kind in each set")
    parser.add_argument("--budget", type=int, default=2_048, help="tokens of the window")
    chosen = parser.parse_args()
    columns: dict[str, dict[str, Figures]] = {}
    for directory in chosen.directories:
        found = asyncio.run(
            compare(
                directory, rankings(), most=chosen.questions, budget=chosen.budget, progress=_show_progress
            )
        )
        columns |= {_column(directory, kind): figures for kind, figures in found.items()}
        print(f"{directory.name} done", file=sys.stderr)
    print(_table(columns))


def _column(directory: Path, kind: str) -> str:
    return directory.name if kind == "all" else f"{directory.name}, {kind}"


def _table(columns: dict[str, dict[str, Figures]]) -> str:
    rows = [f"| | {' | '.join(columns)} |", f"| --- {'| --- ' * len(columns)}|"]
    for name in rankings():
        cells = [f"{figures[name][0]:.1f} / {figures[name][1]:.1f}" for figures in columns.values()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _show_progress(what: str, done: int, total: int) -> None:
    print(f"{what}: {done} of {total}", file=sys.stderr)


if __name__ == "__main__":
    main()

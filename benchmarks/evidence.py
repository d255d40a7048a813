"""What is found of public sets: python benchmarks/evidence.py --save.

`conspectus eval retrieval` and `conspectus eval conversation` of each set below `--sets`, in two tables.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import Result

SETS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
DOCUMENTS = ("cranfield", "hotpotqa100", "scifact", "cosqa", "zoomcamp_faq", "cookbook_code")
CONVERSATIONS = ("locomo", "beam_100k", "qmsum")
WORST = -1.0


def evaluated(*arguments: str) -> Any:
    """What `conspectus eval` reports."""
    command = [sys.executable, "-m", "conspectus", "eval", *arguments, "--json"]
    print(" ".join(["conspectus", *command[3:]]), file=sys.stderr, flush=True)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def documents(sets: Path) -> Sequence[Sequence[str]]:
    """nDCG@10 by either retriever and by both, and the distance of both from the better one."""
    rows = []
    for name in DOCUMENTS:
        report = evaluated("retrieval", str(sets / name))
        keyword, vector, hybrid = (report[way]["ndcg@10"] for way in ("keyword", "vector", "hybrid"))
        beside = hybrid - max(keyword, vector)
        shown = f"{beside:+.1f}" if beside >= WORST else f"**{beside:+.1f}**"
        figures = (f"{each:.1f}" for each in (keyword, vector, hybrid))
        queries = len(report["hybrid"]["by_question"])
        rows.append([name, f"{queries:,}", *figures, shown, f"{report['hybrid']['recall@10']:.1f}"])
    return rows


def conversations(sets: Path) -> Sequence[Sequence[str]]:
    """Recall of turns, also by category, and the evidence in windows."""
    rows = []
    for name in CONVERSATIONS:
        report = evaluated("conversation", str(sets / name))
        kinds = ", ".join(f"{kind} {value:.1f}" for kind, value in report["by_category"].items())
        figures = (report[each] for each in ("turn_recall@10", "evidence_in_budget", "session_hit@1"))
        rows.append([name, f"{report['questions']:,}", *(f"{each:.1f}" for each in figures), kinds])
    return rows


def main() -> None:
    """Print both tables, and save them for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=Path, default=SETS, help="folder of the sets")
    parser.add_argument("--save", action="store_true", help="save the results for the documentation")
    given = parser.parse_args()
    found = Result.of(
        "nDCG@10 from 0 to 100; hybrid search against the better retriever, and its recall@10.",
        ["set", "queries", "keywords", "vectors", "hybrid", "against", "recall@10"],
        documents(given.sets),
    )
    said = Result.of(
        "Recall of turns, evidence in 2,048 tokens, and how often the best turn has its session.",
        ["set", "questions", "recall@10", "in windows", "session hit@1", "recall@10 by kind"],
        conversations(given.sets),
    )
    for name, result in {"documents": found, "conversations": said}.items():
        print(result.markdown())
        if given.save:
            result.save(name)


if __name__ == "__main__":
    main()

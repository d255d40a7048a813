"""What is found of public sets: python benchmarks/evidence.py --save.

A table of each of `TABLES`, of the sets below `--sets`: what `conspectus eval` reports of sets of documents,
conversations, turns and videos, and of trust, and what the scripts beside this one measure of the others.
`--only` chooses tables.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ablation import ablation, rankings
from entities import entities
from feedback import measured
from injection import injection, read_attacks, read_harmless
from results import Result, option_parser
from threads import ThreadFigures, threads
from window_losses import measure_losses

from conspectus.evals.evidence import BUDGETS
from conspectus.evals.moments import DEPTHS, THRESHOLDS, VIDEO_DEPTHS
from conspectus.evals.retrieval import WITH_GRAPH
from conspectus.text.attack_patterns import attack_pattern

SETS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
DOCUMENTS = ("cranfield", "hotpotqa100", "scifact", "cosqa", "zoomcamp_faq", "cookbook_code")
CONVERSATIONS = ("locomo", "beam_100k", "qmsum")
TALK = ("locomo", "gitter_livechat", "irc_disentanglement", "beam_100k", "qmsum", "longmemeval_sample")
CHANNELS = ("irc_disentanglement", "gitter_livechat")
JUDGED = ("zoomcamp_faq", "hotpotqa100", "cookbook_code", "cranfield", "cosqa")
MOMENTS = (
    *(f"recall@{depth} iou {share}" for depth in DEPTHS for share in THRESHOLDS),
    "miou",
    *(f"video_hit@{depth}" for depth in VIDEO_DEPTHS),
)
HARMLESS = (
    "fastapi_docs",
    "cranfield",
    "locomo",
    "zoomcamp_faq",
    "scifact",
    "cookbook_code",
    "cosqa",
    "peps",
    "xquad",
)
ORDINARY = (
    *HARMLESS,
    "hotpotqa100",
    "mtrag_un",
    "chunking_evaluation",
    "legalbench_rag",
    "qmsum",
    "gitter_livechat",
    "irc_disentanglement",
    "beam_100k",
    "longmemeval_sample",
)
"""Sets of which every 2,000 characters are looked at for patterns of attacks."""
PIECE = 2_000
LINKED = ("hotpotqa100", "mtrag_un", "cookbook_code", "zoomcamp_faq", "cranfield", "scifact", "cosqa")
DEEP = ("ndcg@10", "recall@5", "recall@10")
KINDS = {
    "all": "all",
    "Follow-up": "follow-ups",
    "Clarification": "clarifications",
    "first": "first turns",
    "N/A": "others",
    "switched": "first turns behind another conversation",
}
QUERIES = {
    "last": "last turn",
    "previous": "with the turn before",
    "every": "all turns",
    "standalone": "made to stand alone",
}
"""Kinds of questions of several turns, and what is searched for, with their names in the table."""
CITED = (
    ("fastapi_docs",),
    ("peps",),
    ("zoomcamp_faq", "--pages", "course"),
    ("zoomcamp_faq",),
    ("chunking_evaluation",),
)
"""Sets whose questions are answered by sentences, with options."""
TEXTS = {
    "cosqa": "code",
    "cookbook_code": "code",
    "zoomcamp_faq": "questions and answers",
    "mtrag_un": "passages, questions of a conversation",
    "hotpotqa100": "passages",
    "scifact": "abstracts",
    "cranfield": "abstracts of one field",
    "rag_blueprint": "notes and code of one person",
    "locomo": "chat messages",
}
"""What the sets hold whose similarities are measured."""
WORST = -1.0


def evaluated(*arguments: str) -> Any:
    """What `conspectus eval` reports."""
    command = ["conspectus", "eval", *arguments, "--json"]
    print(" ".join(command), file=sys.stderr, flush=True)
    command[0] = str(Path(sys.executable).with_name("conspectus"))
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def documents(sets: Path) -> Result:
    """nDCG@10 by either retriever and by both, and the distance of both from the better one."""
    rows = []
    for name in DOCUMENTS:
        report = evaluated("retrieval", str(sets / name))
        keyword, vector, hybrid = (report[way]["ndcg@10"] for way in ("keyword", "vector", "hybrid"))
        beside = hybrid - max(keyword, vector)
        difference = f"{beside:+.1f}" if beside >= WORST else f"**{beside:+.1f}**"
        figures = (f"{figure:.1f}" for figure in (keyword, vector, hybrid))
        queries = len(report["hybrid"]["by_question"])
        rows.append([name, f"{queries:,}", *figures, difference, f"{report['hybrid']['recall@10']:.1f}"])
    return Result.of(
        "nDCG@10 from 0 to 100; hybrid search against the better retriever, and its recall@10.",
        ["set", "queries", "keywords", "vectors", "hybrid", "against", "recall@10"],
        rows,
    )


def conversations(sets: Path) -> Result:
    """Recall of turns, also by category, and the evidence in windows."""
    rows = []
    for name in CONVERSATIONS:
        report = evaluated("conversation", str(sets / name))
        kinds = ", ".join(f"{kind} {value:.1f}" for kind, value in report["by_category"].items())
        figures = (report[key] for key in ("turn_recall@10", "evidence_in_budget", "session_hit@1"))
        rows.append([name, f"{report['questions']:,}", *(f"{figure:.1f}" for figure in figures), kinds])
    return Result.of(
        "Recall of turns, evidence in 2,048 tokens, and how often the best turn has its session.",
        ["set", "questions", "recall@10", "in windows", "session hit@1", "recall@10 by kind"],
        rows,
    )


def windows(sets: Path) -> Result:
    """What windows of 256 to 2,048 tokens lose of the ten best, by cause."""
    return measure_losses([sets / name for name in CONVERSATIONS[:2]], limit=334)


def parts(sets: Path) -> Result:
    """What each part of the score of talk is worth: 100 questions of each kind with parts switched off."""
    by_set = ablation([sets / name for name in TALK], maximum=100)
    rows = [
        [
            name,
            *(
                f"{recalled:.1f} ({in_budget:.1f})"
                for recalled, in_budget in (of[name] for of in by_set.values())
            ),
        ]
        for name in rankings()
    ]
    title = "Turn recall@10, and in brackets evidence in windows of 2,048 tokens, from 0 to 100."
    return Result.of(title, ["", *by_set], rows)


def cited(sets: Path) -> Result:
    """The evidence that is completely in small windows."""
    rows = []
    for name, *options in CITED:
        report = evaluated("evidence", str(sets / name), "--limit", "300", *options)
        for kind, of in report.items():
            shares = (f"{of[str(tokens)]:.1f}" for tokens in BUDGETS)
            rows.append([f"{' '.join((name, *options))}: {kind}", str(of["asked"]), *shares])
    columns = ["set", "questions", *(f"{tokens:,} tokens" for tokens in BUDGETS)]
    return Result.of("Evidence that is completely in a window, from 0 to 100.", columns, rows)


def linked(sets: Path) -> Result:
    """Hybrid search without and with the graph of entities."""
    rows = []
    for name in LINKED:
        report = evaluated("retrieval", str(sets / name), "--graph")
        before, after = report["hybrid"], report[WITH_GRAPH]
        figures = (f"{of[key]:.1f}" for key in DEEP for of in (before, after))
        rows.append([name, f"{len(before['by_question']):,}", *figures])
    names = (key.replace("ndcg", "nDCG") for key in DEEP)
    columns = ["set", "queries", *(f"{key}{graph}" for key in names for graph in ("", ", graph"))]
    return Result.of("Hybrid search without and with the graph, from 0 to 100.", columns, rows)


def turns(sets: Path) -> Result:
    """Questions that depend on earlier turns, by what is searched for."""
    report = evaluated("turns", str(sets / "mtrag_un"))
    rows = []
    for kind, label in KINDS.items():
        figures = [[f"{report[way][kind][key]:.1f}" for key in DEEP] for way in QUERIES]
        cells = (f"{ndcg} ({', '.join(recalls)})" for ndcg, *recalls in figures)
        rows.append([label, str(report["last"][kind]["questions"]), *cells])
    title = "nDCG@10, and in brackets recall@5 and recall@10, from 0 to 100."
    return Result.of(title, ["", "questions", *QUERIES.values()], rows)


def similarity(sets: Path) -> Result:
    """Similarities of queries to answers and to random texts."""
    report = evaluated("similarity", *(str(sets / name) for name in TEXTS))
    rows = [
        [name, TEXTS.get(name, ""), *(_percentiles(of[key]) for key in ("related", "unrelated"))]
        for name, of in report.items()
    ]
    title = "Median, and in brackets 5th and 95th percentile."
    return Result.of(title, ["set", "texts", "query and answer", "query and random text"], rows)


def _percentiles(of: Mapping[str, float]) -> str:
    return f"{of['p50']:.2f} ({of['p5']:.2f} to {of['p95']:.2f})"


def moments(sets: Path) -> Result:
    """The time ranges that answer questions about videos."""
    rows = []
    for name, limit in (("tutorialvqa", 3_000), ("activitynet_captions", 1_000)):
        report = evaluated("moments", str(sets / name), "--limit", str(limit))
        for way, of in report.items():
            figures = (of.get(key) for key in MOMENTS)
            cells = ("-" if figure is None else f"{figure:.1f}" for figure in figures)
            rows.append([f"{name}: {way}", f"{of['questions']:,}", *cells])
    columns = ["set", "questions", *(key.replace("recall@", "R@").replace("0.", ".") for key in MOMENTS)]
    return Result.of("Recall by the overlap in time (IoU), from 0 to 100.", columns, rows)


def attacks(sets: Path) -> Result:
    """How many hostile texts are more than text in a prompt."""
    kinds = asyncio.run(injection(sets / "prompt_injection"))["kinds"]
    rows = [[kind, str(of["attacks"]), str(of["failed"])] for kind, of in kinds.items()]
    return Result.of("Hostile texts in the prompt of a chat.", ["attacks", "texts", "got through"], rows)


def harmless(sets: Path) -> Result:
    """How many texts that attack nobody are changed all the same."""
    folders = [sets / name for name in HARMLESS]
    by_folder = asyncio.run(injection(sets / "prompt_injection", harmless=folders))["harmless"]
    rows = [[name, f"{of['texts']:,}", str(of["changed"])] for name, of in by_folder.items()]
    return Result.of("Changed beyond XML's own escapes.", ["folder", "texts", "changed"], rows)


def patterns(sets: Path) -> Result:
    """How many hostile texts match an attack pattern, and how many pieces of ordinary ones."""
    texts = dict(read_attacks(sets / "prompt_injection"))
    for name in ORDINARY:
        text = "\n".join(read_harmless(sets / name))
        texts[name] = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    matched = {name: sum(attack_pattern(text) is not None for text in of) for name, of in texts.items()}
    rows = [[name, f"{len(texts[name]):,}", str(number)] for name, number in matched.items()]
    title = f"Attacks, and the texts of sets in pieces of {PIECE:,} characters."
    return Result.of(title, ["", "texts", "matched"], rows)


def trust(_: Path) -> Result:
    """What histories of writes and copies that attack the levels of trust did."""
    report = evaluated("trust")
    labels = {
        "histories": "histories",
        "writes": "writes",
        "laundering": "steps that copy text",
        "quarantined": "attacks that were quarantined or refused",
        "levels_raised": "levels raised",
        "quarantined_shown": "attacks shown",
    }
    rows = [[name, f"{report[key]:,}"] for key, name in labels.items()]
    return Result.of("Of the last two there must be none.", ["", "number"], rows)


def names(sets: Path) -> Result:
    """How well names are found and linked."""
    reports = {name: entities(sets / name) for name in ("conel2", "redocred")}
    rows = [
        [f"{name}: {way}", *(f"{of[key]:.1f}" for key in ("precision", "recall", "f1"))]
        for name, ways in reports.items()
        for way, of in ways.items()
    ]
    return Result.of("From 0 to 100.", ["", "precision", "recall", "F1"], rows)


def replies(sets: Path) -> Result:
    """How well it is found what messages answer; all channels of a set, and each."""
    rows = []
    for name in CHANNELS:
        report = threads(sets / name)
        rows += [_thread_row(f"**{name}**", report["linked"])]
        rows += [_thread_row(f"{name}: the message before", report["message_before"])]
        rows += [_thread_row(channel.rpartition("/")[2], of) for channel, of in report["by_channel"].items()]
    columns = ["channel", "links", "precision", "recall", "last of the thread", "one-to-one", "exact match"]
    return Result.of("F1 where nothing else is said, from 0 to 100.", columns, rows)


def _thread_row(name: str, of: ThreadFigures) -> list[str]:
    links = of.get("links") or of["links_to_last_of_thread"]
    figures = (links["f1"], links["precision"], links["recall"], of["last_of_thread"]["f1"])
    return [name, *(f"{figure:.1f}" for figure in (*figures, of["one_to_one"], of["exact_match_f1"]))]


def feedback(sets: Path) -> Result:
    """nDCG@10 before and after feedback on half of the queries."""
    rows = []
    for name in JUDGED:
        [judgments], *figures = asyncio.run(measured(sets / name, 400, 1)).values()
        rows.append([name, f"{judgments:.0f}", *(f"{figure:.1f}" for pair in figures for figure in pair)])
    queries = ("the same", "as keywords", "others")
    columns = ["set", "judgments", *(f"{kind}{after}" for kind in queries for after in ("", ", after"))]
    return Result.of("nDCG@10 before and after feedback.", columns, rows)


TABLES: Mapping[str, Callable[[Path], Result]] = {
    "documents": documents,
    "conversations": conversations,
    "windows": windows,
    "parts": parts,
    "cited": cited,
    "linked": linked,
    "turns": turns,
    "similarity": similarity,
    "moments": moments,
    "injection": attacks,
    "harmless": harmless,
    "patterns": patterns,
    "trust": trust,
    "names": names,
    "feedback": feedback,
    "threads": replies,
}


def main() -> None:
    """Print the tables, and save them for the documentation."""
    parser = option_parser(__doc__)
    parser.add_argument("--sets", type=Path, default=SETS, help="folder of the sets")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), help="tables")
    arguments = parser.parse_args()
    for name in arguments.only:
        TABLES[name](arguments.sets).shown(name, save=arguments.save)


if __name__ == "__main__":
    main()

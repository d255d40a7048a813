"""Documents that others supersede, in windows: python benchmarks/current.py --save.

The PEPs of the evaluation sets are asked for by the title of each superseded one, in windows of 1,024 tokens.
Counted are windows with the old text and none of its successor, and those that do not say that it is
superseded. All other PEPs are asked for in the same way. Detection compares the relations that were read
with the fields `Superseded-By` and `Replaces` of `metadata.jsonl` and with banners. The second kind of
document are all texts without their header: only a banner in prose is left, and a person made the labels.
"""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from results import Result, option_parser

import conspectus
from conspectus import Engine, NewDocument
from conspectus.model.results import ContextWindow
from conspectus.text.relation_rules import statements_of

SETS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
PEPS = SETS / "peps"
BANNERS: Final[Mapping[int, frozenset[int]]] = {
    9: frozenset({12}),
    216: frozenset({287}),
    262: frozenset({345, 376}),
    354: frozenset({435}),
    550: frozenset({567}),
}
"""The PEPs that say in a banner by what they are superseded; all others have no such banner."""

Pair = tuple[int, int]


def read_peps(*, without_header: bool = False) -> dict[int, NewDocument]:
    """Return the PEPs by number, or their texts below the header."""
    peps = {}
    for path in sorted(PEPS.glob("pep-*.rst")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^Title:\s*(.+(?:\n[ \t]+.+)*)", text, re.MULTILINE)
        number = int(path.stem.removeprefix("pep-"))
        if without_header:
            text = text.partition("\n\n")[2]
        name = " ".join(title[1].split()) if title else path.stem
        peps[number] = NewDocument(text, title=name, key=path.name, syntax="rst")
    return peps


def read_fields() -> Sequence[dict[str, Any]]:
    """Return the header fields of all PEPs."""
    lines = (PEPS / "metadata.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def stated_pairs(peps: Mapping[int, NewDocument]) -> set[Pair]:
    """Return the pairs of a new and an old PEP that the fields state, where both have a text."""
    pairs: set[Pair] = set()
    for fields in read_fields():
        pairs |= {(int(new), fields["pep"]) for new in re.findall(r"\d+", fields["superseded_by"] or "")}
        pairs |= {(fields["pep"], int(old)) for old in re.findall(r"\d+", fields["replaces"] or "")}
    return {pair for pair in pairs if set(pair) <= peps.keys()}


async def read_pairs(engine: Engine) -> set[Pair]:
    """Return the pairs of a new and an old PEP that were read when they were added."""
    page = await engine.documents.list(collection="peps", limit=1_000)
    numbers = {document.id: int(document.key[4:8]) for document in page.documents}
    pairs: set[Pair] = set()
    for document in page.documents:
        relations = await engine.documents.list_relations(document.id)
        pairs |= {
            (numbers[relation.document], numbers[relation.other])
            for relation in relations
            if relation.kind == "supersedes" and not relation.reason
        }
    return pairs


def read_banners() -> set[Pair]:
    """Return the pairs of a new and an old PEP that the old one states in prose, whether both have texts."""
    pairs: set[Pair] = set()
    for number, pep in read_peps(without_header=True).items():
        for stated in statements_of("", str(pep.key), pep.text, {}):
            target = re.fullmatch(r"pep (\d+)", stated.target)
            if target and stated.kind == "supersedes" and stated.is_inverse:
                pairs.add((int(target[1]), number))
    return pairs


def score(read: set[Pair], stated: set[Pair]) -> dict[str, float]:
    """Return precision, recall and F of the pairs that were read."""
    right = len(read & stated)
    precision, recall = right / max(len(read), 1), right / max(len(stated), 1)
    return {
        "read": len(read),
        "stated": len(stated),
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "F": round(2 * precision * recall / max(precision + recall, 1e-9), 3),
    }


def check_window(window: ContextWindow, old: str, new: Sequence[str]) -> dict[str, int]:
    """Return what a window asked with the title of an old document lacks, each 0 or 1."""
    keys = {citation.key for citation in window.citations}
    has_old = old in keys
    first = min((citation.number for citation in window.citations if citation.key == old), default=0)
    line = re.search(rf"^\[{first}\].*", window.text, re.MULTILINE) if first else None
    return {
        "old": int(has_old),
        "new": int(bool(keys.intersection(new))),
        "old without new": int(has_old and not keys.intersection(new)),
        "old not marked": int(has_old and (line is None or "(superseded by" not in line[0])),
    }


async def measure(tokens: int, others: int) -> dict[str, Any]:
    """Add the PEPs, of those that no relation is about so many at most, and return all figures."""
    peps = read_peps()
    related = set().union(*stated_pairs(peps)) | BANNERS.keys() | set().union(*BANNERS.values())
    unrelated = [number for number in peps if number not in related]
    peps = {number: peps[number] for number in sorted({*unrelated[:others], *related} & peps.keys())}
    with tempfile.TemporaryDirectory() as folder:
        async with conspectus.open(folder) as engine:
            await engine.add(list(peps.values()), collection="peps", source="peps", wait=True)
            stated = stated_pairs(peps)
            totals = await _ask_old_titles(engine, peps, stated, tokens)
            other_windows = await _ask_other_titles(engine, peps, stated, tokens)
            read = await read_pairs(engine)
    banner_pairs = {(new, old) for old, successors in BANNERS.items() for new in successors}
    readable = {pair for pair in banner_pairs if set(pair) <= peps.keys()}
    banners = read_banners()
    return {
        "windows": totals,
        "other windows": other_windows,
        "fields and banners": score(read, stated | readable),
        "banners": score(banners, banner_pairs),
        "read and not stated": sorted(read - stated - readable),
    }


async def _ask_old_titles(
    engine: Engine, peps: Mapping[int, NewDocument], stated: set[Pair], tokens: int
) -> dict[str, int]:
    totals: dict[str, int] = {"asked": 0}
    for old in sorted({old for _, old in stated}):
        new = [str(peps[number].key) for number, other in stated if other == old]
        window = await engine.window(peps[old].title, tokens, collection="peps")
        totals["asked"] += 1
        for name, count in check_window(window, str(peps[old].key), new).items():
            totals[name] = totals.get(name, 0) + count
    return totals


async def _ask_other_titles(
    engine: Engine, peps: Mapping[int, NewDocument], stated: set[Pair], tokens: int
) -> dict[str, int]:
    """Ask for all PEPs that nothing supersedes: the window must have them, and no mark for them."""
    superseded = {old for _, old in stated} | BANNERS.keys()
    totals = {"asked": 0, "has it": 0, "marked": 0, "with a mark": 0}
    for number, pep in peps.items():
        if number in superseded:
            continue
        window = await engine.window(pep.title, tokens, collection="peps")
        numbers = [citation.number for citation in window.citations if citation.key == pep.key]
        totals["asked"] += 1
        totals["has it"] += bool(numbers)
        totals["with a mark"] += "(superseded by" in window.text
        totals["marked"] += any(f"[{number}] (superseded by" in window.text for number in numbers)
    return totals


def to_rows(figures: dict[str, Any]) -> list[list[str]]:
    """Return the figures as rows of a table."""
    windows, others = figures["windows"], figures["other windows"]
    of_all = f"of {windows['asked']}"
    rows = [
        ["asked with an old title: the old text is shown", f"{windows['old']} {of_all}"],
        ["the old text without its successor", f"{windows['old without new']} {of_all}"],
        ["the old text without a mark", f"{windows['old not marked']} {of_all}"],
        ["asked with another title: the text is shown", f"{others['has it']} of {others['asked']}"],
        ["a text that nothing supersedes has a mark", f"{others['marked']} of {others['asked']}"],
    ]
    for name in ("fields and banners", "banners"):
        scores = figures[name]
        pairs = f"{scores['read']} pairs read, {scores['stated']} stated"
        rows.append([f"relations from {name}: {pairs}", f"F {scores['F']:.2f}"])
    return rows


def main() -> None:
    """Measure, print, and keep the figures on request."""
    parser = option_parser(__doc__)
    parser.add_argument("--tokens", type=int, default=1_024, help="tokens of a window")
    parser.add_argument("--others", type=int, default=10_000, help="PEPs that no relation is about")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.tokens, arguments.others))
    print(json.dumps(figures, indent=2))
    title = f"PEPs, windows of {arguments.tokens:,} tokens."
    result = Result.of(title, ["documents that others supersede", ""], to_rows(figures), figures=figures)
    result.shown("current", save=arguments.save)


if __name__ == "__main__":
    main()

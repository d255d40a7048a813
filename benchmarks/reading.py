"""Reading: words, words in order and cells of tables of files, beside other converters, by format.

    python benchmarks/reading.py --peers PYTHON

`PYTHON` is the interpreter of an environment that has MarkItDown and pdfminer.six; without it only our reader
is measured.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from made_pages import MadePage, made_pdfs, made_web_pages
from made_pdf_tables import made_pdf_tables
from made_sheets import made_sheets, made_workbooks
from made_tables import made_pep_tables, made_tables
from reading_scores import Pair, pairs_in, score
from results import Result, option_parser

from conspectus import bootstrap
from conspectus.errors import ConspectusError
from conspectus.ports import FoundFile
from conspectus.settings import Settings
from conspectus.sources.subtitles.caption_import import read_caption_file

GOLD_BY_COLUMN = frozenset({"xlsx_07_gap_tolerance_.xlsx"})
"""Forms whose gold has all numbers, then all labels, then all units and values; people read them by row."""
OURS = "conspectus"
PEERS = ("markitdown", "pdfminer.six")


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's text by one converter, and the seconds that it took; empty if it failed."""

    text: str
    seconds: float


def pairs_made(pages: Iterator[MadePage], directory: Path) -> Iterator[Pair]:
    """Write pages that were made by script, and yield them."""
    for page in pages:
        path = directory / page.name
        path.write_bytes(page.content)
        yield Pair(page.kind, path, page.expected)


def pairs_by_row(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the pairs of each format in which a gold is by column, without these, as a kind of their own."""
    kinds = {pair.kind for pair in pairs if pair.path.name in GOLD_BY_COLUMN}
    for pair in pairs:
        if pair.kind in kinds and pair.path.name not in GOLD_BY_COLUMN:
            yield replace(pair, kind=f"{pair.kind}, gold by row")


def read_ours(pairs: Sequence[Pair]) -> list[Reading]:
    """Read the files by this engine."""
    files = bootstrap.local_files(Settings.from_environment())
    readings = []
    for pair in pairs:
        begin, text = _processor_seconds(), ""
        with contextlib.suppress(ConspectusError):
            parsed = files.parse(FoundFile(pair.path, pair.path.name, pair.path.stat().st_size))
            text = "\n\n".join(document.text for document in parsed.documents)
            if parsed.has_captions:
                track = read_caption_file(pair.path.read_text(encoding="utf-8"), pair.path.name)
                text = "\n\n".join(caption.text for caption in track.captions)
        readings.append(Reading(text, max(0.0, _processor_seconds() - begin)))
    return readings


def _processor_seconds() -> float:
    """Return the processor time of this process and of the children that are alive, where files are read."""
    seconds = time.process_time()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def read_by_peer(peer: str, python: Path, pairs: Sequence[Pair]) -> list[Reading]:
    """Read the files by another converter, in a process of its environment."""
    script = Path(__file__).with_name("reading_peers.py")
    request = "\n".join(str(pair.path) for pair in pairs)
    done = subprocess.run(
        [python, script, peer], input=request, stdout=subprocess.PIPE, text=True, check=True
    )
    return [Reading(**json.loads(line)) for line in done.stdout.split("\n") if line]


def rows_of(pairs: Sequence[Pair], readings: Mapping[str, Sequence[Reading]]) -> Iterator[list[str]]:
    """Yield a row for each format and converter."""
    for kind in sorted({pair.kind for pair in pairs}):
        positions = [index for index, pair in enumerate(pairs) if pair.kind == kind]
        for name, texts in readings.items():
            if name == "pdfminer.six" and not kind.startswith("pdf"):
                continue
            scores = [score(pairs[index].expected, texts[index].text) for index in positions]
            cells = [one.cells for one in scores if one.cells is not None]
            in_order = [one.cells_in_order for one in scores if one.cells_in_order is not None]
            milliseconds = mean(texts[index].seconds for index in positions) * 1000
            yield [
                f"{kind}: {name}",
                str(len(positions)),
                f"{100 * mean(one.words for one in scores):.1f}",
                f"{100 * mean(one.order for one in scores):.1f}",
                f"{100 * mean(cells):.1f}" if cells else "-",
                f"{100 * mean(in_order):.1f}" if in_order else "-",
                str(sum(one.false_tables for one in scores)),
                f"{milliseconds:.0f} ms",
            ]


def _share(share: float | None) -> float:
    return 1.0 if share is None else share


def main() -> None:
    """Print the table, and save it for the documentation."""
    parser = option_parser(__doc__)
    parser.add_argument("--sets", type=Path, default=Path("../shared/eval"), help="folder of the sets")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="interpreter with the other converters")
    parser.add_argument("--made", type=int, default=12, help="number of texts that pages are made from")
    parser.add_argument("--worst", type=int, default=0, help="number of our worst files to name")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sets: Path = arguments.sets
        pairs = [
            *pairs_in(sets / "docling_docs"),
            *pairs_in(sets / "markitdown_files"),
            *pairs_made(made_pdfs(sets / "peps", arguments.made), Path(folder)),
            *pairs_made(made_web_pages(sets / "fastapi_docs" / "en", arguments.made), Path(folder)),
            *pairs_made(made_tables(), Path(folder)),
            *pairs_made(made_pep_tables(sets / "peps"), Path(folder)),
            *pairs_made(made_sheets(), Path(folder)),
            *pairs_made(made_workbooks(sets / "peps"), Path(folder)),
            *pairs_made(made_pdf_tables(sets / "peps", arguments.made), Path(folder)),
        ]
        pairs += pairs_by_row(pairs)
        readings = {OURS: read_ours(pairs)}
        for peer in PEERS if arguments.peers else ():
            readings[peer] = read_by_peer(peer, arguments.peers, pairs)
    columns = ["format: reader", "files", "words", "in order", "cells", "cells in order", "false tables"]
    columns.append("processor time of a file")
    rows = list(rows_of(pairs, readings))
    Result.of("Shares of the expected Markdown, from 0 to 100.", columns, rows).shown(
        "reading", save=arguments.save
    )
    scores = [
        (score(pair.expected, text.text), pair) for pair, text in zip(pairs, readings[OURS], strict=True)
    ]
    for one, pair in sorted(scores, key=lambda named: named[0].order + _share(named[0].cells_in_order))[
        : arguments.worst
    ]:
        print(f"{one.words:.3f} {one.order:.3f} {one.cells} {pair.kind} {pair.path.name}", file=sys.stderr)


if __name__ == "__main__":
    main()

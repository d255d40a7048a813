"""Whether questions for a first mention find it: python benchmarks/first_mention.py.

The questions are made from public texts. A subject is a word or two adjacent words that a stream or a
document has in at least four captions or paragraphs. `mention` asks when it is mentioned first; the answer is
the first caption or paragraph with it. `introduction` asks when it is introduced or explained; the answers
are the captions or paragraphs that define it ("what we call a …", "known as …", "… is a …"), wherever they
stand. Each question is asked in its own stream or document.

Percent of the questions whose answer is in the best moment or hit, in the best three, and in a window of 256
tokens.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from first_mention_questions import (
    INTRODUCTION,
    MENTION,
    Question,
    TimedText,
    all_questions,
    overlaps,
    paragraphs_of,
)
from results import Result, option_parser

from conspectus import Settings
from conspectus.engine import Engine
from conspectus.evals.moment_sets import read_moment_set
from conspectus.evals.stores import fresh_engine
from conspectus.model.captions import NewCaption
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument

SETS = Path(os.environ.get("CONSPECTUS_EVAL", "../shared/eval"))
SUBTITLES = "3b1b_captions"
VIDEOS = "tutorialvqa"
PAGES = ("fastapi_docs", "chunking_evaluation", "peps")
MAX_DOCUMENTS = 60
MIN_DOCUMENT_CHARACTERS = 6_000
MAX_DOCUMENT_CHARACTERS = 60_000
DEPTH = 3
WINDOW_TOKENS = 256


async def read_streams(engine: Engine, name: str) -> dict[str, list[TimedText]]:
    """Store the captions of a set, and return them by stream."""
    if name == SUBTITLES:
        files = sorted((SETS / SUBTITLES / "srt").glob("*.english.srt"))
        await engine.streams.import_captions([str(file) for file in files])
    else:
        for video, captions in read_moment_set(SETS / name).videos.items():
            new = [NewCaption(text.text, text.start, text.end, index=text.index) for text in captions]
            await engine.streams.add_captions(new, stream=video)
    await engine.documents.wait_until_embedded()
    texts: dict[str, list[TimedText]] = {}
    for stream in await engine.streams.list():
        page = await engine.streams.list_captions(stream=stream.source.name, limit=1_000)
        texts[stream.source.name] = [
            TimedText(caption.text, caption.start or 0.0, caption.end or 0.0) for caption in page.captions
        ]
    return texts


def read_documents(name: str) -> dict[str, str]:
    """Return the longer documents of a set by key, evenly chosen."""
    folder = SETS / name
    if (folder / "corpus.jsonl").exists():
        lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line]
        texts = {str(row["id"]): str(row["text"])[:MAX_DOCUMENT_CHARACTERS] for row in rows}
    else:
        files = [file for ending in ("md", "rst") for file in sorted(folder.rglob(f"*.{ending}"))]
        texts = {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in files}
    long = [
        key
        for key, text in texts.items()
        if MIN_DOCUMENT_CHARACTERS <= len(text) <= MAX_DOCUMENT_CHARACTERS and not key.startswith("es/")
    ]
    step = max(len(long) // MAX_DOCUMENTS, 1)
    return {key: texts[key] for key in long[::step][:MAX_DOCUMENTS]}


async def ask_stream(engine: Engine, question: Question) -> tuple[list[bool], bool]:
    """Return whether each of the best moments has an answer, and whether the window has."""
    streams = (question.name,)
    moments = (await engine.streams.search(question.text, streams=streams, limit=DEPTH)).moments
    window = await engine.streams.window(question.text, WINDOW_TOKENS, streams=streams)
    answers = [overlaps(moment.start, moment.end, question.answers) for moment in moments]
    captions = window.captions
    shown = [overlaps(caption.start or 0.0, caption.end or 0.0, question.answers) for caption in captions]
    return answers, any(shown)


async def ask_document(engine: Engine, question: Question, document: str) -> tuple[list[bool], bool]:
    """Return whether each of the best hits has an answer, and whether the window has."""
    where = Eq("document", document)
    hits = (await engine.retrieve(question.text, filter=where, limit=DEPTH)).hits
    window = await engine.window(question.text, WINDOW_TOKENS, filter=where)
    answers = [overlaps(hit.chunk.start, hit.chunk.end, question.answers) for hit in hits]
    shown = [overlaps(citation.start, citation.end, question.answers) for citation in window.citations]
    return answers, any(shown)


def row_of(name: str, kind: str, outcomes: Sequence[tuple[list[bool], bool]]) -> list[str]:
    """Return the row of the questions of a kind."""
    figures = (
        fmean(any(answers[:1]) for answers, _ in outcomes),
        fmean(any(answers) for answers, _ in outcomes),
        fmean(is_shown for _, is_shown in outcomes),
    )
    return [f"{name}: {kind}", str(len(outcomes)), *(f"{100 * figure:.1f}" for figure in figures)]


async def measure(name: str) -> list[list[str]]:
    """Return the rows of a set."""
    settings = replace(Settings.from_environment(), log_level="critical")
    outcomes: dict[str, list[tuple[list[bool], bool]]] = {MENTION: [], INTRODUCTION: []}
    async with fresh_engine(settings) as engine:
        if name in PAGES:
            texts = read_documents(name)
            written = await engine.add([NewDocument(text, key=key) for key, text in texts.items()], wait=True)
            ids = dict(zip(texts, (document.id for document in written), strict=True))
            for question in all_questions({key: paragraphs_of(text) for key, text in texts.items()}):
                outcomes[question.kind].append(await ask_document(engine, question, ids[question.name]))
        else:
            for question in all_questions(await read_streams(engine, name)):
                outcomes[question.kind].append(await ask_stream(engine, question))
    return [row_of(name, kind, of_kind) for kind, of_kind in outcomes.items() if of_kind]


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments of the command line."""
    sets = (SUBTITLES, VIDEOS, *PAGES)
    parser.add_argument("--only", nargs="+", choices=sets, default=list(sets), help="sets")
    return parser.parse_args()


def main() -> None:
    """Print the table of all sets."""
    arguments = arguments_of(option_parser(__doc__))
    rows = [row for name in arguments.only for row in asyncio.run(measure(name))]
    columns = ["set", "questions", "best", f"best {DEPTH}", f"in {WINDOW_TOKENS} tokens"]
    Result.of("Questions whose answer is found, percent.", columns, rows).shown(
        "first-mention", save=arguments.save
    )


if __name__ == "__main__":
    main()

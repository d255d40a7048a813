"""Scans: what is found in scanned pages of what is found in the same pages with a text layer.

    python benchmarks/scans.py [--questions 200] [--save]

Documents of `chunking_evaluation` and `legalbench_rag` below `--sets`, whose questions have exact spans,
are printed on pages of about 400 words: a PDF with a text layer, and its scan at 200 dpi (blurred, skewed
by up to 1.5 degrees, with noise, as JPEG). Both are read and searched. Recall is the share of the words of
the spans, three in a row, that are in the first five hits. Needs the extra `ocr`.
"""

import asyncio
import io
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

import numpy as np
import pypdfium2
from evidence import SETS
from made_pages import join_pdf_objects
from PIL import Image, ImageFilter
from results import Result, option_parser

import conspectus
from conspectus.model.results import Hit
from conspectus.sources.files.extract import Extract
from conspectus.sources.files.ocr import DPI, Recognizer, load_recognizer
from conspectus.sources.files.parsers import documents_of_extract
from conspectus.sources.files.pdf import read_pdf

SHARES = {"chunking_evaluation": 0.7, "legalbench_rag": 0.3}
MAX_DOCUMENT_CHARACTERS = 130_000
LINE_CHARACTERS = 95
PAGE_LINES = 34
DEPTH = 5
SHINGLE = 3
PAGE_POINTS = (595, 842)
MAX_SKEW_DEGREES = 1.5
BLUR_PIXELS = 0.8
NOISE = 18


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the texts that answer it."""

    text: str
    document: str
    spans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The documents that were read from PDFs, and the processor seconds of a page."""

    extracts: Mapping[str, Extract]
    seconds_a_page: float


def main() -> None:
    """Read and search both forms of the pages."""
    parser = option_parser(__doc__)
    parser.add_argument("--sets", type=Path, default=SETS, help="the folder of the sets")
    parser.add_argument("--questions", type=int, default=200, help="how many questions")
    options = parser.parse_args()
    texts: dict[str, str] = {}
    questions: list[Question] = []
    for name, share in SHARES.items():
        set_questions = choose_questions(options.sets / name, round(share * options.questions))
        questions += set_questions
        texts |= read_texts(options.sets / name, {question.document for question in set_questions})
    pages = {name: write_pdf(text) for name, text in texts.items()}
    recognizer = load_recognizer()
    readings = {
        "text layer": read(pages, None),
        "scan": read({name: scan(file) for name, file in pages.items()}, recognizer),
    }
    count = sum(len(pypdfium2.PdfDocument(file)) for file in pages.values())
    rows = []
    figures: dict[str, Any] = {"questions": len(questions), "documents": len(pages), "pages": count}
    for form, reading in readings.items():
        share = asyncio.run(search(reading.extracts, questions))
        words = fmean(word_share(texts[name], extract.text) for name, extract in reading.extracts.items())
        figures[form] = {"recall@5": share, "words": words, "seconds_a_page": reading.seconds_a_page}
        rows.append([form, f"{100 * share:.1f}", f"{100 * words:.1f}", f"{reading.seconds_a_page:.2f}"])
    words_a_page = round(sum(len(text.split()) for text in texts.values()) / count)
    size = f"{count} pages with {words_a_page} words on average"
    title = f"{len(questions)} questions to {len(pages)} documents of {size}, {DPI} dpi."
    columns = ("pages", "recall@5", "words", "CPU seconds a page")
    Result.of(title, columns, rows, figures=figures).shown("scans", save=options.save)


def choose_questions(folder: Path, count: int) -> list[Question]:
    """Return questions whose spans lie in one document that is not huge, from few documents."""
    lengths = {row["id"]: len(row["text"]) for row in read_rows(folder / "corpus.jsonl")}
    by_document: dict[str, list[Question]] = defaultdict(list)
    for row in read_rows(folder / "queries.jsonl"):
        names = {span.get("doc", row.get("doc")) for span in row["spans"]}
        if len(names) == 1 and lengths[name := names.pop()] <= MAX_DOCUMENT_CHARACTERS:
            spans = tuple(span["text"] for span in row["spans"])
            by_document[name].append(Question(row["text"], name, spans))
    shortest_first = sorted(by_document, key=lambda name: lengths[name] / len(by_document[name]))
    return [question for name in shortest_first for question in by_document[name]][:count]


def read_texts(folder: Path, names: set[str]) -> dict[str, str]:
    """Return the texts of documents."""
    return {row["id"]: row["text"] for row in read_rows(folder / "corpus.jsonl") if row["id"] in names}


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_pdf(text: str) -> bytes:
    """Return a PDF with a text layer, in lines of Times."""
    lines = [line for paragraph in text.splitlines() for line in wrap(paragraph, LINE_CHARACTERS) or [""]]
    pages = [lines[start : start + PAGE_LINES] for start in range(0, len(lines), PAGE_LINES)]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        operators = b" ".join(b"(%s) Tj T*" % _pdf_string(line) for line in page)
        content = b"BT /F1 11 Tf 16 TL 60 780 Td %s ET" % operators
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (*PAGE_POINTS, 5 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    return join_pdf_objects(objects)


def _pdf_string(line: str) -> bytes:
    encoded = line.encode("cp1252", "replace")
    return encoded.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def scan(file: bytes) -> bytes:
    """Return the PDF of scans of the pages of a PDF."""
    chance, noise = random.Random(len(file)), np.random.default_rng(len(file))
    images = []
    for page in pypdfium2.PdfDocument(file):
        image = page.render(scale=DPI / 72, grayscale=True).to_pil()
        degrees = chance.uniform(-MAX_SKEW_DEGREES, MAX_SKEW_DEGREES)
        skewed = image.rotate(degrees, fillcolor=245, resample=Image.Resampling.BICUBIC)
        blurred = np.asarray(skewed.filter(ImageFilter.GaussianBlur(BLUR_PIXELS)), dtype=np.float32)
        gray = 0.9 * blurred + 12 + noise.normal(0, NOISE, blurred.shape)
        images.append(Image.fromarray(gray.clip(0, 255).astype(np.uint8)))
    buffer = io.BytesIO()
    images[0].save(buffer, "PDF", resolution=DPI, save_all=True, append_images=images[1:])
    return buffer.getvalue()


def read(files: Mapping[str, bytes], recognizer: Recognizer | None) -> Reading:
    """Read the files, as the child process of the readers does."""
    began = time.process_time()
    extracts = {}
    for name, file in files.items():
        if recognizer is not None:
            recognizer.begin_file(math.inf)
        extracts[name] = read_pdf(file, recognizer)
    seconds = time.process_time() - began
    pages = sum(len(pypdfium2.PdfDocument(file)) for file in files.values())
    return Reading(extracts, seconds / pages)


async def search(extracts: Mapping[str, Extract], questions: Sequence[Question]) -> float:
    """Return the mean share of the spans' words that are in the first hits."""
    with TemporaryDirectory() as folder:
        async with conspectus.open(Path(folder) / "store") as engine:
            for name, extract in extracts.items():
                documents, _ = documents_of_extract(extract, name=name, path=name)
                await engine.add(list(documents))
            await engine.documents.wait_until_embedded()
            searches = [(await engine.search(question.text, limit=DEPTH)).hits for question in questions]
    return fmean(map(recall, questions, searches))


def recall(question: Question, hits: Sequence[Hit]) -> float:
    """Return the share of the words of a question's spans that are in the hits."""
    expected = set().union(*map(shingles, question.spans))
    read_words = set().union(*(shingles(hit.chunk.text) for hit in hits))
    return len(expected & read_words) / max(1, len(expected))


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return the words of a text, three in a row."""
    words = normal_words(text)
    return set(zip(*(words[shift:] for shift in range(SHINGLE)), strict=False))


def word_share(expected: str, text: str) -> float:
    """Return the share of the words of a text, three in a row, that were read."""
    return len(shingles(expected) & shingles(text)) / max(1, len(shingles(expected)))


def normal_words(text: str) -> list[str]:
    """Return the words of a text as they can be printed in the PDF."""
    return text.encode("cp1252", "replace").decode("cp1252").split()


if __name__ == "__main__":
    main()

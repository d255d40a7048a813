"""Files made to break parsers: each gives documents or one of our errors, in bounded time, nothing else."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conspectus.errors import ConspectusError, UnreadableFile
from conspectus.model.captions import CaptionTrack
from conspectus.model.records import NewDocument
from conspectus.ports import FoundFile, ParsedFile
from conspectus.sources.caption_files import LocalCaptions
from conspectus.sources.encoding import decode
from conspectus.sources.files.local_files import LocalFiles

FILES, CAPTIONS = LocalFiles(), LocalCaptions()
LANGUAGES = re.compile("-(croatian|hungarian|polish|slovak|bulgarian|russian|greek|turkish|hebrew|arabic)$")
DECLARATION = re.compile(rb"(?i)(encoding|charset)\s*=\s*[\"']?[\w.-]+")


def parse_files(folder: Path) -> Iterator[tuple[str, ParsedFile | ConspectusError]]:
    for file in FILES.discover([folder]):
        try:
            yield file.name, FILES.parse(file)
        except ConspectusError as error:
            yield file.name, error


def read_captions(path: Path) -> CaptionTrack:
    """Read a file of captions as an import of streams does. Raises UnreadableFile."""
    return CAPTIONS.read(path.read_bytes(), path.name, sentences=True)


def storable(document: NewDocument) -> bool:
    json.dumps(dict(document.metadata), allow_nan=False).encode()
    return bool(document.text.strip() and document.key) and "\0" not in document.text


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 100_000 + "deep" + "</div>" * 100_000,
        "<b><i>" * 50_000 + "deep", "<table>" * 50_000 + "deep",
        "<!--" * 50_000, "<!" * 100_000, "<a " * 100_000, "<" * 200_000, "</" * 100_000,
        "<a " + "x='" * 100_000, "&" * 200_000, "&#" + "9" * 100_000 + ";", "<![CDATA[" * 50_000,
        "<script>" * 50_000, "<title>" * 50_000, "<?" * 100_000, "<svg><math>" * 30_000,
    ],
    ids=lambda markup: markup[:8],
)  # fmt: skip
def test_hostile_markup(tmp_path: Path, markup: str) -> None:
    (tmp_path / "a.html").write_text(markup, encoding="utf-8")
    parsed = FILES.parse(FoundFile(tmp_path / "a.html", "a.html", 0))
    assert parsed.documents or parsed.notice
    if "deep" in markup:
        assert "deep" in parsed.documents[0].text


@pytest.mark.parametrize("name", ["a.md", "a.rst", "a.srt", "a.vtt", "a.py"])
@pytest.mark.parametrize(
    "line", ["=", "#", "`", " ", "-->", "00:00 --> ", "---\n", "\n", "<v ", "{\\", "1\n"]
)
def test_a_line_repeated_without_end(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).write_text(line * 100_000, encoding="utf-8")
    try:
        parsed = FILES.parse(FoundFile(tmp_path / name, name, 0))
        track = read_captions(tmp_path / name) if parsed.has_captions else None
    except UnreadableFile:
        return
    assert parsed.documents or parsed.notice or (track is not None and (track.captions or track.notice))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# a" + " " * 1_000_000 + "b"),
        ("a.md", "# x " + "#" * 1_000_000 + "x"),
        ("a.md", "---\ntitle: x" + " \t" * 500_000 + "x\n---\n"),
        ("a.md", "---\n" + "\n---x" * 500_000),
        ("a.rst", "!" * 1_000_000 + "\n" + "=" * 1_000_000),
    ],
    ids=lambda text: text[:12],
)
def test_no_pattern_is_slow_on_a_line_made_for_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    [document] = FILES.parse(FoundFile(tmp_path / name, name, 0)).documents
    assert document.text
    assert len(document.title) <= 300


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vtt", "00:01.000 --> 00:02.000\n" + "<v " * 1_000_000),
        ("a.srt", "00:01,000 --> 00:02,000\n" + "{\\" * 1_000_000),
    ],
    ids=lambda text: text[:12],
)
def test_no_pattern_is_slow_on_captions_made_for_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert FILES.parse(FoundFile(tmp_path / name, name, 0)).has_captions
    captions = read_captions(tmp_path / name).captions
    assert captions and all(caption.text for caption in captions)


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["html5lib_tests", "json_test_suite", "markitdown_files", "naughty_strings", "csv_spectrum",
             "pdf_hostile", "ftfy_mojibake", "chardet_files", "subtitle_files"],
)  # fmt: skip
def test_every_file_is_read_or_refused(evaluation: Callable[[str], Path], name: str) -> None:
    read = 0
    for file, outcome in parse_files(evaluation(name)):
        read += 1
        if isinstance(outcome, ParsedFile):
            assert outcome.documents or outcome.notice or outcome.members or outcome.has_captions, file
            assert all(map(storable, outcome.documents)), file
            assert all(member.file or member.fault for member in outcome.members), file
    assert read > 0


@pytest.mark.data
def test_json_is_accepted_and_rejected_as_its_test_suite_says(evaluation: Callable[[str], Path]) -> None:
    counts: Counter[str] = Counter()
    for file, outcome in parse_files(evaluation("json_test_suite") / "test_parsing"):
        refused = isinstance(outcome, ConspectusError) or outcome.notice == "the file is empty"
        counts[file[0]] += 1
        assert not (file.startswith("y_") and refused), file
        assert not (file.startswith("n_") and not refused), file
    assert counts["y"] > 50 < counts["n"]


@pytest.mark.data
@pytest.mark.parametrize("declared", [True, False])
def test_every_encoding_is_recognised(evaluation: Callable[[str], Path], declared: bool) -> None:
    wrong = []
    for path in sorted(evaluation("chardet_files").glob("*/*")):
        truth = LANGUAGES.sub("", path.parent.name)
        data = path.read_bytes()
        if not declared and not truth.lower().startswith("utf"):
            data = DECLARATION.sub(b"", data)
        decoded = decode(data)
        text = data.decode({"MacCyrillic": "mac_cyrillic"}.get(truth, truth))
        if decoded is None or decoded.text.lstrip("\ufeff") != text.lstrip("\ufeff"):
            wrong.append(f"{path.parent.name}/{path.name}")
    assert wrong == []


@pytest.mark.data
def test_no_markup_with_text_comes_out_empty(evaluation: Callable[[str], Path], tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    for path in sorted(evaluation("html5lib_tests").glob("tree-construction/*.dat")):
        for case in path.read_text(encoding="utf-8").split("#data\n")[1:]:
            markup, _, tree = case.partition("\n#errors")
            page.write_text(markup, encoding="utf-8")
            if markup.count("\0") > 0.1 * len(markup) or "<noscript><!--" in markup:
                continue
            plain = re.search(r'\n\| {5}"([A-Za-z]\w*)"', tree.partition("<body>")[2])
            assert not plain or FILES.parse(FoundFile(page, "a.html", 0)).documents, markup

"""How the share of expected words is counted, and which files are paired with what they should become."""

from pathlib import Path

import pytest
from benchmarks.parsing import parsing, share
from tests.office_samples import docx, paragraph

from conspectus.errors import InvalidInput


@pytest.mark.parametrize(
    ("expected", "text", "expected_share"),
    [
        ("one two", "Two, ONE!", 1.0), ("one one two", "one two", 2 / 3), ("one", "", 0.0), ("", "x", 1.0),
        ("a\\_b &lt;c&gt;", "a_b <c>", 1.0), ("<!-- image -->one", "one", 1.0), ("naïve 日本", "naïve", 0.5),
        ("[text](http://example.org/a)", "text", 1.0), ("one", "[one](two)", 1.0), ("two", "[one](two)", 0.0),
    ],
)  # fmt: skip
def test_the_share_of_expected_words(expected: str, text: str, expected_share: float) -> None:
    assert share(expected, text) == pytest.approx(expected_share)


def test_formats_are_reported_with_their_worst_file_and_their_failures(tmp_path: Path) -> None:
    for name in ("sources", "groundtruth"):
        (tmp_path / "docx" / name).mkdir(parents=True)
    files = {
        "docx/sources/a.docx": docx(paragraph("one two")), "docx/groundtruth/a.docx.md": b"one two 3 4",
        "docx/sources/b.docx": b"not a document", "docx/groundtruth/b.docx.md": b"one",
        "docx/sources/alone.docx": b"", "x.txt": b"one", "x.txt.md": b"one", "y.md": b"no pair",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    reports = parsing(tmp_path)
    assert sorted(reports) == ["docx", "txt"]
    assert reports["txt"] == {
        "files": 1,
        "mean": 100.0,
        "worst": 100.0,
        "worst_file": "x.txt",
        "failures": {},
    }
    docx_report = reports["docx"]
    assert (docx_report["files"], docx_report["mean"], docx_report["worst_file"]) == (2, 25.0, "b.docx")
    assert list(docx_report["failures"]) == ["b.docx"]


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no file X"):
        parsing(tmp_path)

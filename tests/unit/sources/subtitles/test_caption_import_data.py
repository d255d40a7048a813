"""Caption files of public collections, compared with other parsers."""

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path

import pytest

from conspectus.errors import UnreadableFile
from conspectus.sources.caption_files import LocalCaptions
from conspectus.sources.encoding import decode
from conspectus.sources.subtitles.cue_blocks import WEBVTT, read_blocks

READER = LocalCaptions()


class Text(HTMLParser):
    """The text of a cue as a browser shows it."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self._shown: list[str] = []
        self.feed(re.sub(r"<\d[^>]*>", "", markup))
        self.close()

    def handle_data(self, data: str) -> None:
        self._shown.append(data)

    def shown(self) -> str:
        return "".join(self._shown)


def letters(text: str) -> str:
    return "".join(text.split())


def files_with_cues(folder: Path) -> Iterator[tuple[Path, list[tuple[float, float, str]]]]:
    for path in sorted((folder / "vtt.js").rglob("*.json")):
        if path.with_suffix(".vtt").exists():
            cues = json.loads(path.read_text(encoding="utf-8"))["cues"]
            expected = [(cue["startTime"], cue["endTime"], cue["text"]) for cue in cues]
            yield path.with_suffix(".vtt"), expected


@pytest.mark.data
@pytest.mark.slow
def test_every_file_of_the_collections_is_read(evaluation: Callable[[str], Path]) -> None:
    refused = []
    folders = (evaluation("subtitle_files"), evaluation("3b1b_captions"))
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    files = [path for path in paths if not path.name.endswith((".json", ".jsonl", ".md"))]
    for path in files:
        for sentences in (False, True):
            try:
                track = READER.read(path.read_bytes(), path.name, sentences=sentences)
            except UnreadableFile:
                refused.append(path.name)
                continue
            assert all(caption.text.strip() and caption.start is not None for caption in track.captions)
    assert len(files) > 250
    assert sorted(set(refused)) == [
        "bad-double-webvtt.vtt", "invalid_format.sbv", "invalid_format1.srt", "invalid_format2.srt",
        "invalid_format3.srt", "invalid_format4.srt",
    ]  # fmt: skip


@pytest.mark.data
def test_cues_agree_with_the_parser_that_browsers_use(evaluation: Callable[[str], Path]) -> None:
    different = []
    for path, expected in files_with_cues(evaluation("subtitle_files")):
        decoded = decode(path.read_bytes())
        assert decoded is not None
        cues, _ = read_blocks(decoded.text.replace("\r\n", "\n").replace("\r", "\n"), WEBVTT)
        if [(cue.start, cue.end, "\n".join(cue.lines)) for cue in cues] != expected:
            different.append(path.stem)
    assert sorted(different) == ["double-line-break", "id", "minimum-spots-over-sixty"]


@pytest.mark.data
def test_captions_say_what_a_browser_shows(evaluation: Callable[[str], Path]) -> None:
    different = []
    for path, cues in files_with_cues(evaluation("subtitle_files")):
        spoken_cues = [
            (start, end, spoken) for start, end, text in cues if (spoken := letters(Text(text).shown()))
        ]
        try:
            captions = READER.read(path.read_bytes(), path.name, sentences=False).captions
        except UnreadableFile:
            captions = ()
        voices = groupby(captions, lambda caption: (caption.start, caption.end))
        if [
            (*times, letters("".join(caption.text for caption in cue))) for times, cue in voices
        ] != spoken_cues:
            different.append(path.stem)
    assert sorted(different) == [
        "double-line-break", "id", "minimum-spots-over-sixty", "start-tag-missing-gt",
    ]  # fmt: skip

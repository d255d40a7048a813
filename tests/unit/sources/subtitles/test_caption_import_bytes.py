"""Caption files as bytes: encodings, limits and hostile content."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import ConspectusError, TooLarge, UnreadableFile, UnsupportedContent
from conspectus.ports.streams import CaptionReader
from conspectus.settings import Settings
from conspectus.sources.caption_files import LocalCaptions
from conspectus.sources.subtitles.caption_import import read_caption_file
from conspectus.sources.subtitles.format_detection import ENDINGS

CUE = "1\r\n00:00:01,000 --> 00:00:02,000\r\nÜber “das”, señor…\r\n\r\n"
TIMES = "00:00:01,000 --> 00:00:02,000\n"
BEGINNINGS = {
    ".ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,,,,,",
    ".scc": "00:00:01:00 ",
    ".vtt": "WEBVTT\n\n",
}
READER: CaptionReader = LocalCaptions(Settings())


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        (CUE.encode(), None),
        (codecs.BOM_UTF8 + CUE.encode(), None),
        (CUE.encode("utf-16"), None),
        (codecs.BOM_UTF16_BE + CUE.encode("utf-16-be"), None),
        (CUE.encode("utf-32"), None),
        (codecs.BOM_UTF32_BE + CUE.encode("utf-32-be"), None),
        (CUE.encode("cp1252"), "the encoding was guessed: cp1252"),
        (CUE.replace("\r\n", "\r").encode(), None),
        (CUE.replace("“", "\0“").encode(), "1 zero characters were replaced"),
    ],
)
def test_every_encoding(data: bytes, notice: str | None) -> None:
    track = READER.read(data, "a.srt", sentences=True)
    assert [caption.text.replace("\ufffd", "") for caption in track.captions] == ["Über “das”, señor…"]
    assert track.notice == notice


def test_marks_of_direction_and_joined_letters_stay() -> None:
    text = "\u202eabc\u202c \u2066x\u2069 👩\u200d🚀 e\u0301"
    track = read_caption_file(f"{TIMES}{text}\n", "a.srt", sentences=True)
    assert [caption.text for caption in track.captions] == [text]


def test_limits_and_what_is_no_text() -> None:
    with pytest.raises(TooLarge):
        LocalCaptions(Settings(max_file_bytes=10)).read(CUE.encode(), "a.srt", sentences=False)
    with pytest.raises(UnsupportedContent, match="a PNG image"):
        READER.read(b"\x89PNG\r\n\x1a\n\0\0", "a.srt", sentences=False)
    with pytest.raises(UnreadableFile, match="binary data"):
        READER.read(bytes(range(256)) * 40, "a.srt", sentences=False)


def test_an_empty_file_says_so() -> None:
    for data in (b"", b" \n\t\n", codecs.BOM_UTF8):
        track = READER.read(data, "a.srt", sentences=False)
        assert (track.captions, track.notice) == ((), "empty files: 1")


@pytest.mark.parametrize(
    "part",
    [
        "a", "<", "</", "<v ", "<c.", "<!--", "[", "{", "{\\", "-->", "00:", "1\n", "\t", ".", "。」", "♪",
        "&", "&#",
        "9420 ", "<sync start=1><p>", "<p>", TIMES, "{}\n", "[1],", '"', ",", "- ", ">>", "\u0301", "MAN: ",
    ],
)  # fmt: skip
def test_one_thing_without_end(part: str) -> None:
    for ending in ENDINGS:
        beginning = BEGINNINGS.get(ending, TIMES)
        for text in (part * (20_000 // len(part)), beginning + part * (20_000 // len(part))):
            try:
                track = read_caption_file(text, f"a{ending}", sentences=True)
            except UnreadableFile:
                continue
            assert track.captions or track.notice or text.startswith("WEBVTT")


def test_a_line_without_end_is_read_whole() -> None:
    track = read_caption_file(TIMES + "word " * 400_000, "a.srt", sentences=True)
    assert sum(caption.text.count("word") for caption in track.captions) == 400_000


def test_very_many_captions_each_stay() -> None:
    cues = [
        f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02},000 --> 99:00:00,000\nline {n}" for n in range(20_000)
    ]
    track = read_caption_file("\n".join(cues), "a.srt")
    assert [(caption.text, caption.start) for caption in track.captions] == [
        (f"line {n}", float(n)) for n in range(20_000)
    ]


@given(st.text(), st.sampled_from(sorted(ENDINGS)), st.booleans())
def test_any_text_gives_captions_or_our_error(text: str, ending: str, sentences: bool) -> None:
    for content in (
        text,
        f"WEBVTT\n\n{TIMES}{text}",
        f"[Events]\nDialogue: {text}",
        f"<tt><p>{text}",
        f"[{text}]",
    ):
        try:
            track = read_caption_file(content, f"a{ending}", sentences=sentences)
        except ConspectusError as error:
            assert isinstance(error, UnreadableFile)
        else:
            assert all(caption.text.strip() for caption in track.captions)

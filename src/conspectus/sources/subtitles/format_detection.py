"""Detection of the format of a caption file, by its content and its name."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TypeAlias

from conspectus.sources.subtitles.cue_blocks import (
    ARROW,
    COMMA,
    read_subrip,
    read_subviewer,
    read_webvtt,
)
from conspectus.sources.subtitles.cues import ParsedCues
from conspectus.sources.subtitles.json_captions import read_json, read_json_lines
from conspectus.sources.subtitles.sami import read_sami
from conspectus.sources.subtitles.scenarist import read_scc
from conspectus.sources.subtitles.substation import read_ass
from conspectus.sources.subtitles.ttml import is_ttml, read_ttml

Read: TypeAlias = Callable[[str], ParsedCues]

ENDINGS: Mapping[str, Read] = {
    ".srt": read_subrip, ".vtt": read_webvtt, ".ass": read_ass, ".ssa": read_ass, ".sbv": read_subviewer,
    ".smi": read_sami, ".sami": read_sami, ".ttml": read_ttml, ".dfxp": read_ttml, ".xml": read_ttml,
    ".scc": read_scc, ".json": read_json, ".json3": read_json, ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}  # fmt: skip
_LINED = frozenset({read_subrip, read_webvtt, read_subviewer})
_LOOKED_AT = 100_000
_SECTION = re.compile(r"\[(?:script info|v4\+? styles|events)\]", re.IGNORECASE)
_SAMI = re.compile(r"(?:<\?xml[^>]*>|<!--|<!doctype[^>]*>|\s)*+<sami[\s>]", re.IGNORECASE)


def reader_of(text: str, name: str) -> Read | None:
    """Return the reader of a text; None for an unknown format."""
    named = ENDINGS.get(PurePath(name).suffix.lower())
    head = text[:_LOOKED_AT].lstrip("\ufeff \t\n")
    marked = _reader_by_signature(head, named)
    if marked is not None:
        return marked
    if named in _LINED or named is None:
        for line in text[:_LOOKED_AT].split("\n"):
            if ARROW.fullmatch(line):
                return named if named is read_webvtt else read_subrip
            if COMMA.fullmatch(line):
                return read_subviewer
    return named


def _reader_by_signature(head: str, named: Read | None) -> Read | None:
    """Return the reader of a format that identifies itself."""
    if head.startswith("WEBVTT"):
        return read_webvtt
    if head.startswith("Scenarist_SCC"):
        return read_scc
    if _SECTION.match(head):
        return read_ass
    if _SAMI.match(head):
        return read_sami
    if head.startswith("<") and is_ttml(head):
        return read_ttml
    if head[:1] in {"{", "["} and named not in _LINED:
        return read_json_lines if named is read_json_lines else read_json
    return None

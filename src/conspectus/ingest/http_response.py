"""What is done with an answer of a web server before it is parsed: judge it, and give it its names."""

import re
from collections.abc import Mapping
from dataclasses import replace
from email.message import Message
from pathlib import PurePath
from urllib.parse import unquote

from conspectus.errors import FetchFailed, UnsupportedContent
from conspectus.ports.web import Fetched
from conspectus.text.urls import parse_url

PLAIN = "text/plain"
PASSING = frozenset({408, 429})
NEVER_TEXT = frozenset({"image", "audio", "video", "font", "model"})
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "application/pdf": (".pdf",), "application/x-pdf": (".pdf",), "application/epub+zip": (".epub",),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (".docx",),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": (".pptx",),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": (".xlsx",),
    "message/rfc822": (".eml",),
}  # fmt: skip
KINDS_OF_TEXT: Mapping[tuple[str, ...], str] = {
    (".html", ".htm", ".xhtml"): "text/html application/xhtml+xml",
    (".md", ".markdown", ".mdx"): "text/markdown text/x-markdown",
    (".rst", ".rest"): "text/x-rst text/prs.fallenstein.rst",
    (".json", ".ipynb"): "application/json text/json text/x-json",
    (".ipynb",): "application/x-ipynb+json",
    (
        ".jsonl",
        ".ndjson",
    ): "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines",
    (".xml", ".rss", ".atom"): "application/xml text/xml application/rss+xml application/atom+xml",
    (".yaml", ".yml"): "application/yaml application/x-yaml text/yaml text/x-yaml",
    (".toml",): "application/toml text/x-toml",
    (".js", ".mjs", ".jsx"): "application/javascript application/x-javascript application/ecmascript "
    "text/javascript text/ecmascript",
    (".ts", ".tsx"): "application/typescript application/x-typescript",
    (".css",): "text/css",
    (".csv",): "text/csv application/csv",
    (".tsv",): "text/tab-separated-values",
    (".vtt",): "text/vtt",
    (".srt",): "application/x-subrip",
    (".sql",): "application/sql application/x-sql text/x-sql",
    (".graphql",): "application/graphql",
    (".sh", ".bash", ".zsh"): "application/x-sh application/x-shellscript text/x-sh text/x-shellscript",
    (".py",): "application/x-python text/x-python application/x-python-code",
    (".php",): "application/x-httpd-php application/x-php",
    (".rb",): "application/x-ruby",
    (".pl",): "application/x-perl",
    (".tex",): "application/x-tex application/x-latex",
}
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    **{kind: suffixes for suffixes, kinds in KINDS_OF_TEXT.items() for kind in kinds.split()},
    **DOCUMENTS,
}
FAMILIES: Mapping[str, str] = {"+json": ".json", "+xml": ".xml", "+yaml": ".yaml"}
DOCUMENT_SUFFIXES = frozenset(suffix for suffixes in DOCUMENTS.values() for suffix in suffixes)
PAGE_SUFFIXES = DOCUMENT_SUFFIXES | {
    ".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp", ".md", ".markdown", ".rst", ".txt",
}  # fmt: skip
SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
BINARY = bytes({*range(32)} - {8, 9, 10, 12, 13, 14, 15, 27})
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
SAMPLE = 65_536
LONGEST_NAME = 150


def checked(fetched: Fetched) -> Fetched:
    """The answer, if text can be read from it; its type is text/plain where the server gave none.

    Raises FetchFailed for any status but 2xx, as passing for 408, 429 and 5xx, and UnsupportedContent for
    what is of no kind that holds text, or says it is text and is not.
    """
    shown = parse_url(fetched.url).shown
    status = fetched.status
    if not 200 <= status < 300:
        passing = status in PASSING or status >= 500
        raise FetchFailed(shown, f"the server answered {status}", status=status, passing=passing)
    kind = fetched.content_type if "/" in fetched.content_type else PLAIN
    if not _holds_text(kind):
        raise UnsupportedContent(shown, f"{kind[:80]} holds no text that can be read")
    if kind not in DOCUMENTS and _looks_binary(fetched.body[:SAMPLE], fetched.charset or ""):
        raise UnsupportedContent(shown, f"says that it is {kind[:80]}, but is binary data")
    return replace(fetched, content_type=kind)


def source_name(url: str) -> str:
    """The domain that a page belongs to, with its port where that is not the usual one."""
    return parse_url(url).authority


def page_key(url: str) -> str:
    """The page's address in its normal form: two spellings of one address have the same key."""
    return str(parse_url(url))


def file_name(fetched: Fetched) -> str:
    """A name for the content whose end says what it is: as the server or the address has it, if that fits."""
    given = _disposition(fetched.headers.get("content-disposition", ""))
    name = _plain_name(given) or _plain_name(_last_part(fetched.url))
    kind = fetched.content_type
    family = next((suffix for end, suffix in FAMILIES.items() if kind.endswith(end)), None)
    fitting = SUFFIXES.get(kind) or ((family,) if family else ())
    suffix = _suffix(name)
    if suffix in fitting or (not fitting and suffix and suffix not in DOCUMENT_SUFFIXES):
        return name
    return (name or parse_url(fetched.url).host) + (fitting[0] if fitting else ".txt")


def title_of(url: str) -> str:
    """A title for a page that has none: the last part of its path in words, or its host."""
    name = _plain_name(_last_part(url))
    if _suffix(name) in PAGE_SUFFIXES:
        name = PurePath(name).stem
    words = " ".join(name.replace("_", " ").replace("-", " ").split())
    return words or parse_url(url).host


def _holds_text(kind: str) -> bool:
    family = kind.partition("/")[0]
    if family in NEVER_TEXT:
        return False
    return family == "text" or kind in SUFFIXES or kind.endswith(tuple(FAMILIES))


def _looks_binary(sample: bytes, charset: str) -> bool:
    """Whether one byte in twenty is a control character that no text has, UTF-16 and UTF-32 left aside."""
    if charset.startswith(("utf-16", "utf-32", "utf16", "utf32", "ucs")) or sample.startswith(WIDE_MARKS):
        return False
    zeros = sorted((sample[::2].count(0), sample[1::2].count(0)))
    if zeros[1] > 0.2 * len(sample) and zeros[0] < 0.1 * zeros[1]:
        return False
    return len(sample) - len(sample.translate(None, BINARY)) > 0.05 * len(sample)


def _disposition(header: str) -> str:
    message = Message()
    message["Content-Disposition"] = CONTROL.sub("", header)
    return message.get_filename("")


def _last_part(url: str) -> str:
    """The last part of the path that is not empty."""
    return unquote(parse_url(url).path.rstrip("/").rpartition("/")[2])


def _plain_name(given: str) -> str:
    """A file's name without folders and control characters, cut in the middle where it is too long."""
    name = CONTROL.sub("", given).replace("\\", "/").rpartition("/")[2].strip(" .")
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 10] + name[-10:]


def _suffix(name: str) -> str:
    suffix = PurePath(name).suffix
    return suffix.lower() if SUFFIX.fullmatch(suffix) else ""

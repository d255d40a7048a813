"""Reads what a document states about other documents: in fields of its header, its metadata or a banner.

No model is asked. A field such as `Supersedes: Handbook` counts in the first lines, a sentence such as "This
page is deprecated, see the new handbook" in the first paragraphs. Code is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from conspectus.model.relations import RelationKind, Statement
from conspectus.text.document_keys import document_key, names_of, path_key, version_of
from conspectus.text.late_patterns import re_pattern, regex_pattern

MAX_HEAD_CHARACTERS: Final = 3_000
MAX_HEADER_LINES: Final = 60
MAX_PARAGRAPHS: Final = 12
MAX_TARGET_CHARACTERS: Final = 160
MAX_STATEMENTS: Final = 40

FIELDS: Final[Mapping[str, tuple[RelationKind, bool]]] = MappingProxyType(
    {
        "supersedes": ("supersedes", False),
        "replaces": ("supersedes", False),
        "obsoletes": ("supersedes", False),
        "superseded by": ("supersedes", True),
        "replaced by": ("supersedes", True),
        "obsoleted by": ("supersedes", True),
        "updates": ("amends", False),
        "amends": ("amends", False),
        "updated by": ("amends", True),
        "amended by": ("amends", True),
        "duplicates": ("duplicates", False),
        "duplicate of": ("duplicates", False),
    }
)
"""Names of fields with the relation that they state, and whether the other document is the newer one."""

_HINTS: Final = (
    *("supersed", "replac", "obsolet", "deprecat", "updat", "amend", "duplicat", "moved", "outdated"),
    *("out of date", "no longer", "archived", "retired"),
)
"""Most texts have none of these, which takes a tenth of the time of one expression to see."""
_UNSEEN: Final = regex_pattern(r"\p{Cf}++")
_FENCE: Final = re_pattern(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_FIELD: Final = re_pattern(r"\W{0,6}([A-Za-z]+(?:[ _-][A-Za-z]+)?)[\s*_]{0,3}[:|=][\s*_]{0,6}(\S.*)")
_LIST_ITEM: Final = re_pattern(r"\s+-\s+(\S.*)|-\s+(\S.*)")
_COLUMNS: Final = re_pattern(r"\s{3,}|\t|\s\|")
_COMMENT: Final = re_pattern(r"\s+\([^()]*\)\s*$")
_OLD_STATUS: Final = re_pattern(r"(?:superseded|deprecated|obsoleted?|replaced|outdated)\b", re.IGNORECASE)
_BY: Final = re_pattern(r"\b(?:by|in favou?r of|see|use)\s+(.+)", re.IGNORECASE)
_LINKS: Final = re_pattern(
    r"\[(?P<text>[^\]\[]{1,200})\]\((?P<address>[^()\s]{1,300})[^()]{0,100}\)"
    r"|:(?P<role>[A-Za-z]{2,10}):`(?P<number>\d{1,6})`"
    r"|:(?:doc|ref|any):`(?:[^`<>]{0,200}<)?(?P<path>[^`<>]{1,300})>?`"
    r"|`[^`<>]{1,200}<(?P<rst>[^`<>\s]{1,300})>`_"
    r"|\[\[(?P<wiki>[^\]|\[]{1,200})(?:\|[^\]\[]{0,200})?\]\]"
)
_QUOTED: Final = re_pattern(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u00bb]{2,160})[\"\u201d\u201c\u00bb]")
_NUMBERED: Final = re_pattern(r"\b([A-Z][A-Za-z]{1,9}[ -]?\d{1,6})\b")
_ALONE: Final = re_pattern(r"\d{1,6}")
_MARKUP: Final = re_pattern(r"[*_`>]+|^\s*(?:\.\. \w+::|!!!.*|///.*|:{3}.*)", re.MULTILINE)
_PARTS: Final = re_pattern(r"\s*[,;]\s*|\s+(?:and|&)\s+")
_SENTENCE_END: Final = re_pattern(r"[.!?](?=\s|$)")

_THIS: Final = (
    r"this (?:[a-z]+ )?(?:page|document|doc|article|guide|file|note|policy|version|specification|standard"
    r"|manual|handbook|tutorial|proposal|memo|contract|agreement|procedure|section|wiki|decision"
    r"|pep|rfc|adr|rfd|kep)"
)
_STATES: Final = (
    r"deprecated|obsoleted?|outdated|out of date|superseded|replaced|archived|retired|moved"
    r"|no longer (?:maintained|valid|current|up to date|in use|in force)"
)
_IS_OLD: Final = re_pattern(
    rf"(?:\b(?:{_THIS}|it)\b,? (?:is|was|has been|has(?= moved))(?: (?:now|officially|since|therefore|also))?"
    rf"(?: withdrawn(?:,? and)?| rejected(?:,? and)?)? (?P<state>{_STATES})\b"
    rf"|^(?:note|warning|attention|important|notice)?\W*(?:{_STATES})"
    r"(?=\W*(?:[:,]|\u2013|\u2014| - | by| in favou?r| to\b))"
    r")(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_POINTS_TO: Final = re_pattern(
    r"\b(?:superseded by|replaced (?:by|with)|obsoleted by|moved to|in favou?r of|by|see|use|refer to|read"
    r"|consult|to)\s+(?P<target>.+)",
    re.IGNORECASE,
)
_IS_NEW: Final = re_pattern(
    rf"\b{_THIS} (?P<verb>supersedes|replaces|obsoletes|amends|updates)\s+(?P<rest>[^\n]+)", re.IGNORECASE
)


def statements_of(title: str, key: str, text: str, metadata: Mapping[str, object]) -> tuple[Statement, ...]:
    """Return the distinct statements of a page about other documents, at most 40."""
    own_names = (*names_of(title, key), *header_names(text))
    statements: list[Statement] = []
    version = version_of(title, key)
    if version is not None:
        statements.append(Statement("supersedes", version[0], basis="version"))
    statements += _read_metadata(metadata, own_names)
    head = text[:MAX_HEAD_CHARACTERS]
    if not head.isascii():
        head = _UNSEEN.sub("", head)
    folded = head.casefold()
    if any(hint in folded for hint in _HINTS):
        head = _FENCE.sub("", head)
        statements += _read_fields(head, own_names)
        statements += _read_banners(head, own_names)
    about_others = (
        stated for stated in statements if stated.basis == "version" or stated.target not in own_names
    )
    return tuple(dict.fromkeys(about_others))[:MAX_STATEMENTS]


def header_names(text: str) -> tuple[str, ...]:
    """Return the number that the first line of a text gives it, such as `PEP: 420`."""
    number = re.match(r"\s*([A-Za-z]{2,10}):[ \t]*(\d{1,6})[ \t]*(?:\n|\Z)", text[:100])
    return (document_key(f"{number[1]} {number[2]}"),) if number else ()


def _read_metadata(metadata: Mapping[str, object], own_names: Iterable[str]) -> Iterator[Statement]:
    for name, stated in metadata.items():
        values = stated if isinstance(stated, list | tuple) else [stated]
        for value in values[:MAX_STATEMENTS]:
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield from _statements_in_field(name, str(value), own_names)


def _read_fields(head: str, own_names: Iterable[str]) -> Iterator[Statement]:
    """Yield what fields in the first lines state; the items of a list below a field belong to it."""
    listing = ""
    for line in head.split("\n")[:MAX_HEADER_LINES]:
        item = _LIST_ITEM.match(line)
        if listing and item:
            yield from _statements_in_field(listing, item[1] or item[2], own_names)
            continue
        listing = ""
        if opened := re.fullmatch(r"\W{0,4}([A-Za-z]+[ _-]?[A-Za-z]*)\W{0,3}:\W*", line[:60]):
            listing = opened[1]
        elif field := _FIELD.match(line[:400]):
            yield from _statements_in_field(field[1], field[2], own_names)


def _statements_in_field(name: str, value: str, own_names: Iterable[str]) -> Iterator[Statement]:
    name = re.sub(r"[ _-]+", " ", name).casefold()
    value = _COLUMNS.split(value.strip(), maxsplit=1)[0]
    if name in FIELDS:
        kind, is_inverse = FIELDS[name]
        for target in _targets_in(value, own_names):
            yield Statement(kind, target, is_inverse)
    elif name == "status" and _OLD_STATUS.match(value.lstrip("*_ ")):
        named = _BY.search(value)
        targets = _targets_in(named[1], own_names) if named else []
        for target in targets or [""]:
            yield Statement("supersedes", target, is_inverse=True)


def _read_banners(head: str, own_names: Iterable[str]) -> Iterator[Statement]:
    """Yield what sentences in the first paragraphs state."""
    is_notice = False
    for paragraph in re.split(r"\n\s*\n", head)[:MAX_PARAGRAPHS]:
        plain = " ".join(_MARKUP.sub(lambda mark: mark[0] if "`" in mark[0] else " ", paragraph).split())
        speaks_of_itself = is_notice or re.search(rf"\b{_THIS}\b", plain, re.IGNORECASE) is not None
        is_notice = paragraph.rstrip().endswith("::")
        for old in _IS_OLD.finditer(plain):
            if old[0][:2].casefold() == "it" and not speaks_of_itself:
                continue
            rest = f"{old['state'] or old[0][: -len(old['rest']) or None]}{old['rest']}"
            pointed = _POINTS_TO.search(_first_sentences(rest))
            targets = _targets_in(pointed["target"], own_names, is_prose=True) if pointed else []
            for target in targets or [""]:
                yield Statement("supersedes", target, is_inverse=True)
        for new in _IS_NEW.finditer(plain):
            kind: RelationKind = FIELDS[new["verb"].casefold()][0]
            for target in _targets_in(_first_sentences(new["rest"], 1), own_names, is_prose=True):
                yield Statement(kind, target)


def _first_sentences(text: str, count: int = 2) -> str:
    """Return the first sentences of a text; a point inside a link or a number ends none."""
    bare = _LINKS.sub(lambda link: "x" * len(link[0]), text)
    ends = [end.start() for end in _SENTENCE_END.finditer(bare)][:count]
    return text[: ends[-1]] if len(ends) == count else text


def _targets_in(value: str, own_names: Iterable[str], *, is_prose: bool = False) -> list[str]:
    """Return the keys of the documents that a value names: links first, then numbers, quotes or the whole."""
    value = value.strip()
    links = list(dict.fromkeys(filter(None, map(_key_of_link, _LINKS.finditer(value[:2_000])))))
    if links:
        return links
    value = _COMMENT.sub("", value.strip(" .*_`\"'\u201c\u201d[]{}<>"))[:MAX_TARGET_CHARACTERS]
    if is_prose:
        quoted = [document_key(text) for text in _QUOTED.findall(value)]
        numbered = [document_key(number) for number in _NUMBERED.findall(value)]
        if quoted or numbered:
            return list(filter(None, dict.fromkeys(quoted or numbered)))
        value = re.split(r"[.,;:!?]\s|\s(?:instead|which|that|and|for)\b", value)[0]
    pieces = [value, *_PARTS.split(value)]
    keys = (_key_of_piece(piece.strip(" .*_`\"'\u201c\u201d[]"), own_names) for piece in pieces)
    return list(filter(None, dict.fromkeys(keys)))


def _key_of_piece(piece: str, own_names: Iterable[str]) -> str:
    """Return the key of a name; a number alone is one of the numbers of the document's own series."""
    if _ALONE.fullmatch(piece):
        series = (re.fullmatch(r"(.*\D) ?\d+", name) for name in own_names)
        prefix = next((match[1].strip() for match in series if match), "")
        return document_key(f"{prefix} {piece}") if prefix else ""
    piece = re.sub(r"^(?:the|our|a|an)\s+", "", piece, flags=re.IGNORECASE)
    is_path = re.fullmatch(r"\S+\.[A-Za-z][A-Za-z0-9]{0,4}|https?://\S+|\S*/\S+", piece) is not None
    return path_key(piece) if is_path else document_key(piece)


def _key_of_link(link: re.Match[str]) -> str:
    if link["number"]:
        return document_key(f"{link['role']} {link['number']}")
    address = link["address"] or link["path"] or link["rst"]
    if address and not address.startswith(("#", "mailto:")):
        return path_key(address)
    return document_key(link["wiki"] or link["text"] or "")

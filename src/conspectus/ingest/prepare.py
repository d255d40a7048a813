"""From a new document to one that can be written: checked, cleaned, split, counted and named."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from conspectus.errors import (
    TEXT_FAULTS,
    InvalidInput,
    TooLarge,
    UnindexableText,
)
from conspectus.ingest.document_fields import Preparation, clean_optional, fingerprint_of, period, storable
from conspectus.ingest.quarantine import attack_of, to_quarantined_form
from conspectus.model.ids import DocumentId
from conspectus.model.index import analyzed_text
from conspectus.model.records import (
    Chunk,
    Document,
    NewDocument,
    PreparedChunk,
    PreparedDocument,
    TextPosition,
)
from conspectus.model.relations import Statement
from conspectus.model.trust import HIGHEST, highest_in, least, least_trusted, origin_in
from conspectus.ports import CountTokens
from conspectus.text.clean import clean
from conspectus.text.document_keys import names_of
from conspectus.text.hashing import KEY_BYTES, content_hash, require_fitting, stable_id
from conspectus.text.positions import (
    box_at,
    check_positions,
    combine_positions,
    headings_in,
    path_of,
    place_at,
)
from conspectus.text.relation_rules import header_names, statements_of
from conspectus.text.sections import page_breaks, sections_of
from conspectus.text.split_boundaries import definitions
from conspectus.text.splitter import SplitOptions, TextSpan, join_blank_pieces, repeated_headers, split
from conspectus.text.tables import has_tables
from conspectus.text.vectors import pack_rows, unit

SECTIONS = "cut at sections"
TABLES = "tables with repeated headers"
PAGES = "cut at pages"
"""Parts of the fingerprint of texts with sections, tables or pages: those split otherwise are split again."""


def describe(new: NewDocument, by: Preparation) -> tuple[Document, bytes | None]:
    """The document's fields without its chunks, and its vector as Records keep it.

    This is cheap, so that unchanged documents cost no splitting.

    Raises InvalidInput for a field that cannot be stored and TooLarge for one over a limit.
    """
    text = clean(new.text)
    if len(text) > by.settings.max_document_characters:
        raise TooLarge("text", size=len(text), limit=by.settings.max_document_characters, unit="characters")
    key = require_fitting("key", clean(new.key), KEY_BYTES) if new.key is not None else str(uuid4())
    origin = least_trusted(by.origin, new.origin, origin_in(by.source.kind, new.role))
    if new.sequence is not None and not -(2**63) <= new.sequence < 2**63:
        raise InvalidInput("sequence", "does not fit into 64 bits")
    described = Document(
        id=DocumentId(stable_id("document", by.source.id, key)),
        collection=by.source.collection,
        source=by.source.id,
        kind=new.kind,
        key=key,
        title=clean(new.title),
        content_hash=content_hash(text),
        fingerprint="",
        recorded=by.now,
        updated=by.now,
        metadata=storable(new.metadata, by.settings),
        author=clean_optional(new.author),
        role=clean_optional(new.role),
        occurred=period(new.occurred),
        sequence=new.sequence,
        parent=DocumentId(new.parent) if new.parent is not None else None,
        thread=None if new.thread is None else require_fitting("thread", clean(new.thread), KEY_BYTES),
        syntax=new.syntax,
        characters=len(text),
        origin=origin,
        trust=least(HIGHEST[origin], highest_in(by.source.kind), new.trust),
        read_by=new.read_by,
    )
    pattern = None if by.reviewed else attack_of(new, described)
    if pattern is not None:
        return to_quarantined_form(new, described, pattern, by), None
    places = check_positions(new.places, new.text)
    vector = None if new.vector is None else pack_rows(unit(new.vector)[None])[0]
    has_sections = new.syntax != "plain" or any(position.headings for position in new.places)
    has_header_rows = new.syntax == "markdown" and has_tables(text)
    boxes = [position.box for position in places if position.box]
    parts = [has_sections and SECTIONS, has_header_rows and TABLES, page_breaks(text, places) and PAGES]
    beside = [places, new.spans, vector, *parts, boxes]
    return replace(described, fingerprint=fingerprint_of(described, beside, by)), vector


def prepare(
    new: NewDocument,
    document: Document,
    by: Preparation,
    *,
    vector: bytes | None = None,
    if_match: str | None = None,
) -> PreparedDocument:
    """Split the text of a described document; text without any visible character has no chunks.

    `document` and `vector` are what `describe` gave. Raises UnindexableText for a text that a later step
    could not handle, so that it is never stored.
    """
    try:
        return _split(new, document, by, vector=vector, if_match=if_match)
    except TEXT_FAULTS as fault:
        raise UnindexableText(type(fault).__name__) from fault


def _split(
    new: NewDocument,
    document: Document,
    by: Preparation,
    *,
    vector: bytes | None,
    if_match: str | None,
) -> PreparedDocument:
    """Return a document with its chunks, each of which was counted and analyzed."""
    if document.kind == "quarantined":
        return PreparedDocument(document, (), if_match)
    text = clean(new.text)
    places = _places(new, text)
    pieces = _pieces(new, text, places, by)
    headers = repeated_headers(text, _split_options(new, by))
    began = [0, *(piece.end for piece in pieces)]
    chunks = tuple(
        _chunk(
            piece,
            places,
            _first_visible(text, piece, began[piece.position]),
            headers.header_at(piece.start),
            by.count,
        )
        for piece in pieces
    )
    if by.analyse is not None:
        for chunk in chunks:
            by.analyse(analyzed_text(document, chunk.text_with_header))
    names, statements = _relations(document, text)
    return PreparedDocument(
        document=document,
        if_match=if_match,
        vector=vector,
        chunks=chunks,
        names=names,
        statements=statements,
    )


def _relations(document: Document, text: str) -> tuple[tuple[str, ...], tuple[Statement, ...]]:
    """Return the names of a page, and what it states about others."""
    if document.kind != "page":
        return (), ()
    names = (*names_of(document.title, document.key), *header_names(text))
    stated = statements_of(document.title, document.key, text, document.metadata)
    return tuple(dict.fromkeys(names)), stated


def own_spans(chunks: Sequence[Chunk], new: NewDocument, by: Preparation) -> tuple[tuple[int, int], ...]:
    """The spans of stored chunks, if they are not those that the text would be split into."""
    stored = tuple((chunk.start, chunk.end) for chunk in chunks)
    text = clean(new.text)
    split_anew = tuple((piece.start, piece.end) for piece in _pieces(new, text, _places(new, text), by))
    return () if stored == split_anew else stored


def _places(new: NewDocument, text: str) -> tuple[TextPosition, ...]:
    return combine_positions(check_positions(new.places, new.text), tuple(headings_in(text, new.syntax)))


def _pieces(new: NewDocument, text: str, places: Sequence[TextPosition], by: Preparation) -> list[TextSpan]:
    """The pieces that the caller asks for, else those that the splitter finds."""
    if new.spans and len(text) != len(new.text):
        raise InvalidInput("spans", "refer to a text with characters that cannot be stored")
    if new.spans:
        return [
            TextSpan(position, start, end, text[start:end]) for position, (start, end) in enumerate(new.spans)
        ]
    sections = definitions(text) if new.syntax == "code" else sections_of(places)
    if text.strip():
        breaks = page_breaks(text, places)
        return join_blank_pieces(text, split(text, _split_options(new, by), sections=sections, breaks=breaks))
    return []


def _split_options(new: NewDocument, by: Preparation) -> SplitOptions:
    return SplitOptions(size=by.settings.chunk_size, overlap=by.settings.chunk_overlap, syntax=new.syntax)


def _first_visible(text: str, piece: TextSpan, after: int) -> int:
    """Where the new text of a chunk begins, after its overlap with those before it."""
    start = max(piece.start, after)
    return piece.end - len(text[start : piece.end].lstrip())


def _chunk(
    piece: TextSpan,
    places: Sequence[TextPosition],
    first_visible: int,
    table_header: str,
    count: CountTokens,
) -> PreparedChunk:
    position = place_at(places, first_visible)
    return PreparedChunk(
        position=piece.position,
        text=piece.text,
        start=piece.start,
        end=piece.end,
        tokens=count(piece.text),
        content_hash=content_hash(piece.text),
        page=position.page,
        heading=path_of(position.headings),
        table_header=table_header or None,
        box=box_at(places, first_visible, piece.end),
    )

"""The operations on documents and files, each declared once."""

from typing import Final

from conspectus.engine.documents import DocumentService
from conspectus.engine.files import FileService
from conspectus.model.files import Grep
from conspectus.model.parameters import Text
from conspectus.operations.operation import Operation

_LISTED: Final = "/collections/{collection}/documents"
_DOCUMENT: Final = "/documents/{document}"
_CHUNKS: Final = f"{_DOCUMENT}/chunks"
_RELATIONS: Final = f"{_DOCUMENT}/relations"

DOCUMENT_OPERATIONS: Final = (
    Operation(DocumentService.list, "GET", _LISTED, id="list_documents"),
    Operation(
        DocumentService.count, "POST", f"{_LISTED}/count", reads=True, wrapped="count", id="count_documents"
    ),
    Operation(
        DocumentService.export,
        "GET",
        f"{_LISTED}/export",
        as_lines=True,
        id="export_documents",
        for_models="named",
    ),
    Operation(
        DocumentService.import_lines,
        "POST",
        f"{_LISTED}/import",
        unhurried=True,
        as_lines=True,
        listed={"lines": Text},
        id="import_documents",
        for_models="named",
    ),
    Operation(
        DocumentService.delete,
        "POST",
        "/documents/delete",
        unhurried=True,
        id="delete_documents",
        for_models="named",
    ),
    Operation(DocumentService.get, "GET", _DOCUMENT, tagged=True, id="get_document"),
    Operation(DocumentService.get_text, "GET", f"{_DOCUMENT}/text", wrapped="text"),
    Operation(DocumentService.get_texts, "POST", "/documents/texts", reads=True, wrapped="texts"),
    Operation(DocumentService.list_chunks, "GET", _CHUNKS),
    Operation(DocumentService.delete_chunks, "DELETE", _CHUNKS, wrapped="deleted", for_models="named"),
    Operation(DocumentService.list_relations, "GET", _RELATIONS, id="list_document_relations"),
    Operation(DocumentService.relate, "PUT", f"{_RELATIONS}/{{related}}", for_models="named"),
    Operation(
        DocumentService.unrelate,
        "DELETE",
        f"{_RELATIONS}/{{related}}",
        wrapped="deleted",
        for_models="named",
    ),
    Operation(FileService.list, "GET", "/files", id="list_files"),
    Operation(FileService.read, "GET", "/files/text", id="read_file"),
    Operation(FileService.find, "GET", "/files/find", id="find_files"),
    Operation(FileService.grep, "POST", "/files/grep", reads=True, unhurried=True, fields_of=Grep),
    Operation(
        DocumentService.list_quarantined, "GET", "/collections/{collection}/quarantined", for_models="never"
    ),
    Operation(DocumentService.release_quarantined, "POST", f"{_DOCUMENT}/release", for_models="never"),
)

"""Operations on documents and their chunks."""

from typing import Final

from conspectus.engine.documents import DocumentService
from conspectus.operations.operation import Operation

_LISTED: Final = "/collections/{collection}/documents"
_DOCUMENT: Final = "/documents/{document}"
_CHUNKS: Final = f"{_DOCUMENT}/chunks"

DOCUMENT_OPERATIONS: Final = (
    Operation(DocumentService.list, "GET", _LISTED, id="list_documents"),
    Operation(
        DocumentService.count, "POST", f"{_LISTED}/count", reads=True, wrapped="count", id="count_documents"
    ),
    Operation(DocumentService.delete, "POST", "/documents/delete", unhurried=True, id="delete_documents"),
    Operation(DocumentService.get, "GET", _DOCUMENT, tagged=True, id="get_document"),
    Operation(DocumentService.get_text, "GET", f"{_DOCUMENT}/text", wrapped="text"),
    Operation(DocumentService.get_texts, "POST", "/documents/texts", reads=True, wrapped="texts"),
    Operation(DocumentService.list_chunks, "GET", _CHUNKS),
    Operation(DocumentService.delete_chunks, "DELETE", _CHUNKS, wrapped="deleted"),
)

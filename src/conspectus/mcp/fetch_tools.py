"""The tools search and fetch as clients expect them that search before they answer, such as ChatGPT."""

from typing import Annotated

from pydantic import Field

from conspectus.mcp.arguments import Arguments, Question
from conspectus.mcp.document_tools import MEMORY_KINDS, get_document_inside
from conspectus.mcp.lines import document_name, escape_content
from conspectus.mcp.token_budget import MAX_TOKEN_CHARACTERS
from conspectus.mcp.tool import ToolCall, json_of, tool
from conspectus.model import parameters
from conspectus.model.filter import In, Not
from conspectus.model.parameters import DEFAULT_HITS
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import Document
from conspectus.model.trust import level_mark
from conspectus.operations.declared import facts_of
from conspectus.text.counts import format_count
from conspectus.text.graphemes import last_border

WEB_SCHEMES = ("https://", "http://")


class FindArguments(Arguments):
    """The arguments of search."""

    query: Question


class FetchArguments(Arguments):
    """The arguments of fetch."""

    id: Annotated[str, Field(**facts_of(parameters.DocumentIdentifier))]


@tool()
async def search(call: ToolCall, arguments: FindArguments) -> str:
    """Find documents for a query, best first: their ids, titles and addresses. Then fetch what you need."""
    retrieval = await call.engine.search.retrieve(
        arguments.query,
        limit=DEFAULT_HITS,
        collection=EVERYWHERE,
        filter=Not(In("kind", MEMORY_KINDS)),
    )
    documents = {hit.document.id: hit.document for hit in retrieval.hits}
    return call.data("results", [_describe_document(call, document) for document in documents.values()])


@tool()
async def fetch(call: ToolCall, arguments: FetchArguments) -> str:
    """Return the text of a document by an id that search returned, with its title and address to cite."""
    document = await get_document_inside(call, arguments.id)
    text = await call.engine.documents.get_text(document.id)
    end = min(len(text), call.budget.tokens * MAX_TOKEN_CHARACTERS)
    answer = _fetched(call, document, text, end)
    while end > 0 and not call.budget.holds(answer):
        end = last_border(text, end * 7 // 8)
        answer = _fetched(call, document, text, end)
    return answer


def _fetched(call: ToolCall, document: Document, text: str, end: int) -> str:
    """Return a document as JSON, with its text up to `end`."""
    head = _describe_document(call, document)
    time = None if document.occurred is None else document.occurred.start
    is_cut = end < len(text)
    metadata = {
        "author": document.author,
        "time": time,
        "truncated": f"{end} of {format_count(len(text), 'character')}" if is_cut else None,
    }
    return json_of({**head, "text": escape_content(text[:end]), "metadata": metadata})


def _describe_document(call: ToolCall, document: Document) -> dict[str, str]:
    """Return id, title and address of a document: its own on the web, or that of its page in the console."""
    is_on_web = document.location.startswith(WEB_SCHEMES)
    return {
        "id": document.id,
        "title": f"{document_name(document)}{level_mark(document.trust)}",
        "url": document.location if is_on_web else f"{call.options.address}/console/documents/{document.id}",
    }

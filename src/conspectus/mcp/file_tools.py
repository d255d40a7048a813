"""Tools that read documents as files."""

from collections.abc import Sequence
from typing import Annotated, Final

from conspectus.engine.files import FileService
from conspectus.errors import NotFound
from conspectus.mcp.arguments import (
    Arguments,
)
from conspectus.mcp.document_tools import MEMORY_KINDS, get_document_inside
from conspectus.mcp.lines import document_name, escape_content, notice_lines, shorten
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, tool
from conspectus.memory.scopes import GRAPHS
from conspectus.model.files import FileEntry, Grep, parse_path
from conspectus.model.filter import In, Not
from conspectus.model.trust import level_mark
from conspectus.operations.declared import declared

MAX_FILES: Final = 200


class FolderArguments(Arguments):
    """The arguments of list_files."""

    path: Annotated[str, declared(FileService.list, "path")] = "/"
    after: Annotated[str | None, declared(FileService.list, "after")] = None


class FileArguments(Arguments):
    """The arguments of read_file."""

    path: Annotated[str, declared(FileService.read, "path")]
    first_line: Annotated[int, declared(FileService.read, "first_line")] = 1
    last_line: Annotated[int | None, declared(FileService.read, "last_line")] = None
    start: Annotated[int, declared(FileService.read, "start")] = 0


class FindArguments(FolderArguments):
    """The arguments of find_files."""

    name: Annotated[str | None, declared(FileService.find, "name")] = None


class GrepArguments(Arguments):
    """The arguments of grep."""

    pattern: Annotated[str, declared(Grep, "pattern")]
    path: Annotated[str, declared(Grep, "path")] = "/"
    literal: Annotated[bool, declared(Grep, "literal")] = False
    ignore_case: Annotated[bool, declared(Grep, "ignore_case")] = False
    context: Annotated[int, declared(Grep, "context")] = 0
    name: Annotated[str | None, declared(Grep, "name")] = None


@tool()
async def list_files(call: ToolCall, arguments: FolderArguments) -> str:
    """List files and folders at a path, as ls does: /collection/source/key."""
    await _require_path_inside(call, arguments.path)
    page = await call.engine.files.list(arguments.path, after=arguments.after, limit=MAX_FILES)
    kinds = (*MEMORY_KINDS, GRAPHS) if call.has_fixed_scope else ()
    return _file_page(call, [file for file in page.entries if file.kind not in kinds], page.next)


@tool()
async def find_files(call: ToolCall, arguments: FindArguments) -> str:
    """Find files below a path by name, as find does."""
    await _require_path_inside(call, arguments.path)
    page = await call.engine.files.find(
        arguments.path,
        name=arguments.name,
        filter=Not(In("kind", MEMORY_KINDS)),
        after=arguments.after,
        limit=MAX_FILES,
    )
    return _file_page(call, page.entries, page.next)


@tool()
async def read_file(call: ToolCall, arguments: FileArguments) -> str:
    """Read lines of a file, as cat and head do, as much as fits into max_tokens."""
    await _require_path_inside(call, arguments.path)
    part = await call.engine.files.read(
        **arguments.model_dump(exclude={"max_tokens"}), max_tokens=call.text_budget().max_tokens
    )
    document = await get_document_inside(call, part.document)
    lines = f"lines {part.first_line} to {part.last_line} of {part.lines}"
    position = f"document {part.document}, characters {part.start} to {part.end} of {part.characters}"
    rest = f"\n\n[goes on: read_file with start={part.next}]" if part.next is not None else ""
    head = f"{document_name(document)}{level_mark(document.trust)} ({lines}; {position})"
    return call.budget.cut(f"{head}\n\n{escape_content(part.text)}{rest}")


@tool()
async def grep(call: ToolCall, arguments: GrepArguments) -> str:
    """Find lines that match a pattern, as grep -rn does. A line 12: matches, a line 11- is beside one."""
    await _require_path_inside(call, arguments.path)
    matches = await call.engine.files.grep(
        **arguments.model_dump(exclude={"max_tokens"}),
        filter=Not(In("kind", MEMORY_KINDS)),
        max_tokens=call.budget.tokens * 7 // 8,
    )
    return call.budget.cut(
        "\n".join(filter(None, (matches.text or "No line matches.", notice_lines(matches.notices))))
    )


async def _require_path_inside(call: ToolCall, path: str) -> None:
    """Raise NotFound for a path in a source outside of what the server fixes; a missing one is left."""
    parts = parse_path(path)
    if not (call.has_fixed_scope and parts.source):
        return
    try:
        source = await call.engine.collections.get_source(parts.source, collection=parts.collection)
    except NotFound:
        return
    if not call.is_inside(source):
        raise NotFound("file", path)


def _file_page(call: ToolCall, entries: Sequence[FileEntry], after: str | None) -> str:
    marked = [(f"{file.path}{level_mark(file.trust)}", shorten(file.title)) for file in entries]
    lines = [f"{path} ({title})" if title else path for path, title in marked]
    foot = f"[goes on: after={after}]" if after is not None else ""
    return call.page(ResultPage(lines, "" if lines else "No files.", foot, between="\n"))

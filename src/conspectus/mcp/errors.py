"""Errors as a model reads them: a code, and what to do; never a traceback, a secret or what was sent."""

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from conspectus.errors import CollectionGone, ConspectusError, InvalidInput, StorageBusy, StorageError
from conspectus.mcp.budget import LEAST, ToolBudget
from conspectus.ports import CountTokens
from conspectus.text.clean import on_one_line

MOST_NAMED = 5
HIDDEN = "the store could not do its work; its operator finds more in the log"


def refusal(error: ConspectusError, count: CountTokens) -> CallToolResult:
    """The result of a call that failed on purpose, of at most LEAST tokens."""
    hidden = isinstance(error, StorageError) and not isinstance(error, StorageBusy | CollectionGone)
    told = HIDDEN if hidden else on_one_line(str(error))
    text = ToolBudget(LEAST, count).cut(f"{error.code}: {told}")
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def unfit(error: ValidationError) -> InvalidInput:
    """What does not fit the schema, by the names of the arguments, without their values."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    named = [(".".join(map(str, each["loc"])) or "arguments", each["msg"]) for each in found[:MOST_NAMED]]
    more = f"; {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    first, *others = named
    rest = "".join(f"; {field}: {reason}" for field, reason in others)
    return InvalidInput(first[0], f"{first[1]}{rest}{more}")

"""Results of refused calls."""

from mcp_types import (
    CallToolResult,
    TextContent,
)

from conspectus.errors import (
    ConspectusError,
    IndexReplaced,
    StorageBusy,
    StorageError,
)
from conspectus.mcp.token_budget import MIN_TOKENS, ToolBudget
from conspectus.ports import CountTokens
from conspectus.text.printing import on_one_line

HIDDEN_ERROR = "the store failed; see the log of the server"


def error_result(error: ConspectusError, count: CountTokens) -> CallToolResult:
    """Return the result of a refused call, of at most MIN_TOKENS tokens."""
    hidden = isinstance(error, StorageError) and not isinstance(error, StorageBusy | IndexReplaced)
    reason = HIDDEN_ERROR if hidden else on_one_line(str(error))
    text = ToolBudget(MIN_TOKENS, count).cut(f"{error.code}: {reason}")
    return CallToolResult(content=[TextContent(text=text)], is_error=True)

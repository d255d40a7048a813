"""The reference of errors: each code with its status, its meaning and what to do."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from scripts.docs.markdown import format_code, format_docstring, format_page, format_table

from conspectus.errors import ConspectusError, NotFound
from conspectus.web.problem_details import CODES, problem_of, status_of

ADVICE: Final = {
    "LLM_AUTH_FAILED": "Check the key of the provider, and that the account may use the model.",
    "LLM_BAD_RESPONSE": "Try again; if it stays, choose another model.",
    "LLM_CONNECTION_ERROR": "Check `CONSPECTUS_CHAT_BASE_URL` and the network, then try again.",
    "LLM_CONTENT_FILTER": "Change the question or the passages; the provider refused to answer.",
    "LLM_CONTEXT_TOO_LONG": "Lower `max_tokens`, or set `CONSPECTUS_CHAT_CONTEXT_TOKENS`.",
    "LLM_ERROR": "Read `reason` in the log of the server.",
    "LLM_MODEL_NOT_FOUND": "Check `CONSPECTUS_CHAT_MODEL`.",
    "LLM_NOT_CONFIGURED": "Set `CONSPECTUS_CHAT_MODEL`.",
    "LLM_RATE_LIMIT": "Wait `retry_after` seconds, or raise the limit of the account.",
    "LLM_TIMEOUT": "Try again, or raise `CONSPECTUS_CHAT_TIMEOUT_SECONDS`.",
    "conflict": "Read what is stored, and change the request as `reason` says.",
    "dangling_edges": "Add the nodes in `missing` first.",
    "request_budget_spent": "Sync again, or raise `CONSPECTUS_SYNC_MAX_REQUESTS`.",
    "access_lost": "Give the connection access or other credentials, and sync it again.",
    "fetch_failed": "Open the address in a browser; try again later.",
    "forbidden_address": "Name the network in `CONSPECTUS_FETCH_ALLOWED_NETWORKS` to allow it.",
    "forked_engine": "Open an engine after the fork.",
    "headers_too_large": "Send a shorter address, or fewer or shorter headers.",
    "index_damaged": "Run `conspectus reindex`.",
    "index_replaced": "Try again.",
    "internal": "Look up the request id in the log of the server.",
    "invalid_input": "Change the field that `field` names as `reason` says.",
    "login_failed": "Log in again with `conspectus login --url URL`.",
    "invalid_token": "Get a new token; the log of the server names the reason by a code.",
    "method_not_allowed": "Use a method that the header `Allow` names.",
    "missing_extra": "Run the line that the message is.",
    "not_found": "Check the name, and that your key may read it.",
    "not_ready": "Wait and try again.",
    "overloaded": "Wait `retry_after` seconds and try again.",
    "permission_denied": "Ask an owner or manager for the role or scope in `needs`.",
    "precondition_failed": "Read it again, then decide whether to write.",
    "provider_error": "Read the message: the request or the account has to change.",
    "provider_unavailable": "Wait `retry_after` seconds and try again.",
    "rate_limited": "Wait `retry_after` seconds, or raise `CONSPECTUS_KEY_REQUESTS_PER_MINUTE`.",
    "records_damaged": "Restore the latest backup.",
    "request_timeout": "Send the request again over a faster connection.",
    "server_unavailable": "Check the address and that the server runs.",
    "storage_busy": "Try again.",
    "storage_error": "Read the message and check the disk or the database.",
    "storage_too_new": "Install the version that wrote the data, or a newer one.",
    "storage_too_old": "Move its content as the message says; see Upgrade.",
    "store_closed": "Open the store again, and use the new engine.",
    "timeout": "Try again with a smaller request, or raise `CONSPECTUS_REQUEST_TIMEOUT_SECONDS`.",
    "too_large": "Send less, or raise the setting that the message names.",
    "too_many_body_bytes": "Send one body after the other, or raise `CONSPECTUS_MAX_USER_BODY_BYTES`.",
    "too_many_failures": "Wait, then send a valid key.",
    "unauthenticated": "Send a valid API key as `Authorization: Bearer csp_...`.",
    "unindexable_text": "Change the text, and report it as a fault of the program.",
    "unknown_tokenizer": "Use a tokenizer that the message names.",
    "unreadable_file": "Open the file in its program, save it again, and add that.",
    "unsupported_content": "Convert it to a supported format.",
    "work_ended": "Nothing: the request has ended.",
    "write_outcome_unknown": "Check what is stored, and send what is missing with another key.",
}
"""What to do for each code."""
SERVER_MEANINGS: Final = {
    "headers_too_large": "The request line and the headers are too large.",
    "internal": "The server has a fault.",
    "method_not_allowed": "The path does not have this method.",
    "not_ready": "The server has not started yet, or is about to stop.",
    "request_timeout": "The request did not arrive in time.",
    "timeout": "The request was not finished in time.",
    "too_many_failures": "Too many requests of this address had no valid key.",
}
"""What the codes mean that only the server has."""


def walk_error_classes(parent: type[ConspectusError] = ConspectusError) -> Iterator[type[ConspectusError]]:
    """Yield every class of error, those below a class after it."""
    for error_class in parent.__subclasses__():
        yield error_class
        yield from walk_error_classes(error_class)


def make_errors_page() -> str:
    """Return the page."""
    class_rows = [
        (
            f"`{error_class.code}`",
            f"`{error_class.__name__}`",
            str(status_of(error_class)),
            format_docstring(error_class.__doc__),
            ADVICE[error_class.code],
        )
        for error_class in walk_error_classes()
        if "code" in vars(error_class)
    ]
    server_rows = [
        (f"`{code}`", "", str(status), SERVER_MEANINGS[code], ADVICE[code])
        for status, code in CODES.items()
        if code in SERVER_MEANINGS
    ]
    return format_page(
        "Errors",
        "Every error of Python, the command line and HTTP has a stable `code`."
        " In Python, errors are subclasses of `conspectus.ConspectusError`, in `conspectus.errors`."
        " Over HTTP, an error is a problem document"
        " (RFC 9457) with the status below. Codes without a class are answers of the server alone.",
        "A problem document:",
        format_code("json", json.dumps(problem_of(NotFound("collection", "notes")).document(), indent=2)),
        format_table(
            ("code", "class", "status", "meaning", "what to do"),
            sorted([*class_rows, *server_rows], key=_lower_code),
        ),
    )


def _lower_code(row: Sequence[str]) -> str:
    return row[0].lower()

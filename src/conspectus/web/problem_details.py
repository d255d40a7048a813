"""Errors as answers: the one table from error classes to status codes, and RFC 9457 problem documents."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from http import HTTPStatus
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from conspectus import errors
from conspectus.deferred import dataclass
from conspectus.errors import (
    ChatError,
    ChatFiltered,
    ConspectusError,
    InvalidInput,
    StorageError,
    WriteOutcomeUnknown,
)
from conspectus.model.chat import Failure
from conspectus.ports.jobs import Commits

MEDIA_TYPE = "application/problem+json"
MAX_NAMED_ERRORS = 20

STATUSES: Mapping[type[ConspectusError], int] = {
    errors.InvalidInput: 422,
    errors.TooLarge: 413,
    errors.NotFound: 404,
    errors.Unauthenticated: 401,
    errors.PermissionDenied: 403,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.UnreadableFile: 422,
    errors.UnsupportedContent: 415,
    errors.FetchFailed: 502,
    errors.ForbiddenAddress: 422,
    errors.Overloaded: 503,
    errors.RateLimited: 429,
    errors.ServerUnavailable: 502,
    errors.MissingExtra: 501,
    errors.ProviderError: 502,
    errors.ProviderUnavailable: 503,
    errors.ChatNotConfigured: 503,
    errors.ChatRateLimited: 429,
    errors.ChatUnreachable: 503,
    errors.ChatTimedOut: 504,
    errors.ChatTooLong: 422,
    errors.StorageError: 500,
    errors.StorageBusy: 503,
    errors.IndexReplaced: 503,
    errors.ConspectusError: 500,
}
"""The status of each class of error, and of those below it that are not named."""

CODES: Mapping[int, str] = {
    400: "invalid_input",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    429: "too_many_failures",
    431: "headers_too_large",
    500: "internal",
    503: "not_ready",
    504: "timeout",
}
"""The codes of internal errors of the server."""

CLIENT_LEFT = 499
"""The status in the log of a request whose client left before its answer."""
ENDED = {"left": CLIENT_LEFT, "stopping": 503, "internal": 500}
"""The statuses of chat events that end an answer and are no errors of the model."""

NO_ROUTE = "no such address; those of the API begin with /api/v1, and /openapi.json lists them"
LIKE_OPENAI = frozenset({"/api/v1/chat/completions", "/api/v1/embeddings", "/api/v1/models"})
"""The paths whose errors have OpenAI's format."""
SCIM_PREFIX = "/scim/"
"""The paths whose errors have the format of SCIM (RFC 7644, 3.12)."""
SCIM_MEDIA_TYPE = "application/scim+json"
SCIM_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
SCIM_TYPES = {"conflict": "uniqueness", "invalid_input": "invalidValue"}
KINDS_OF_OPENAI = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
PERMANENT_CODES = {errors.ChatNotConfigured.code, errors.ChatAuthFailed.code, errors.ChatModelUnknown.code}
"""Codes after which it does not help to ask again, which clients of OpenAI do by themselves."""

BUSY = "the store is busy; ask again"
UNKNOWN = (
    "this write may or may not have been done, or in part, as its answer was lost; sent again with the same"
    " Idempotency-Key nothing is done twice, and where this is said again, look what is there"
)
BROKEN = "the store could not do its work; the server's log says why"
FIELD = re.compile(r"[a-z_]+|[0-9]+", re.ASCII)
RESERVED = {"type", "title", "status", "detail", "code"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem document; `facts` are members besides the standard ones."""

    status: int
    code: str
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the members of the document."""
        facts = {f"upstream_{name}" if name in RESERVED else name: fact for name, fact in self.facts.items()}
        title = "Client Closed Request" if self.status == CLIENT_LEFT else HTTPStatus(self.status).phrase
        head = {"type": "about:blank", "title": title, "status": self.status}
        return {**head, "detail": self.detail, "code": self.code, **facts}

    def response(self) -> Response:
        """Return the document as a response; what UTF-8 cannot carry is replaced."""
        body = json.dumps(self.document(), ensure_ascii=False, allow_nan=False, default=str)
        return Response(body.encode("utf-8", "replace"), self.status, dict(self.headers), MEDIA_TYPE)


class Refused(Exception):
    """A request that ends with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def refuse(status: int, detail: str, **headers: str) -> NoReturn:
    """End the request with a problem of the server itself."""
    raise Refused(Problem(status, CODES[status], detail, headers=headers))


def status_of(kind: type[ConspectusError]) -> int:
    """Return the status of a class of error: its own, or that of the nearest class above it."""
    return next(STATUSES[ancestor] for ancestor in kind.__mro__ if ancestor in STATUSES)


def problem_of(error: ConspectusError) -> Problem:
    """Return the problem of an error of ours. Messages of a store may name its files, so none is repeated."""
    status = status_of(type(error))
    if isinstance(error, StorageError):
        unknown = isinstance(error, WriteOutcomeUnknown)
        passing = status == HTTPStatus.SERVICE_UNAVAILABLE and not unknown
        headers = {"Retry-After": "1"} if passing else {}
        return Problem(
            status, error.code, UNKNOWN if unknown else BUSY if passing else BROKEN, headers=headers
        )
    if isinstance(error, ChatError):
        return problem_of_failure(Failure(error.code, error.user_message))
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        headers["Retry-After"] = str(math.ceil(wait))
    return Problem(status, error.code, str(error), vars(error), headers)


def problem_of_failure(failure: Failure) -> Problem:
    """Return the problem of a chat that failed before there was an answer."""
    kinds: dict[str, type[ChatError]] = {ChatError.code: ChatError, ChatFiltered.code: ChatFiltered}
    kinds |= {kind.code: kind for kind in ChatError.__subclasses__()}
    kind = kinds.get(failure.code)
    status = ENDED.get(failure.code, HTTPStatus.BAD_GATEWAY) if kind is None else status_of(kind)
    return Problem(status, failure.code, failure.message)


def openai_error(problem: Problem) -> dict[str, Any]:
    """Return the problem as clients of OpenAI read one."""
    usual = "invalid_request_error" if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    kind, field = KINDS_OF_OPENAI.get(problem.status, usual), problem.facts.get("field")
    return {"error": {"message": problem.detail, "type": kind, "param": field, "code": problem.code}}


def scim_error(problem: Problem) -> dict[str, Any]:
    """Return the problem as clients of SCIM read one."""
    status = HTTPStatus.BAD_REQUEST if problem.status == HTTPStatus.UNPROCESSABLE_ENTITY else problem.status
    scim_type = SCIM_TYPES.get(problem.code)
    error = {"schemas": [SCIM_ERROR], "status": str(int(status)), "detail": problem.detail}
    return error if scim_type is None else {**error, "scimType": scim_type}


def answer_problem(problem: Problem, path: str) -> Response:
    """Return the problem as a response, in the form that clients of that path read."""
    if path.startswith(SCIM_PREFIX):
        error = scim_error(problem)
        text = json.dumps(error, ensure_ascii=False).encode("utf-8", "replace")
        return Response(text, int(error["status"]), dict(problem.headers), SCIM_MEDIA_TYPE)
    if path not in LIKE_OPENAI:
        return problem.response()
    status = HTTPStatus.BAD_REQUEST if problem.status in {413, 422} else problem.status
    headers = dict(problem.headers)
    if problem.code in PERMANENT_CODES:
        headers["X-Should-Retry"] = "false"
    body = json.dumps(openai_error(problem), ensure_ascii=False, allow_nan=False, default=str)
    return Response(body.encode("utf-8", "replace"), status, headers, "application/json")


def internal_problem(request_id: str) -> Problem:
    """Return the problem of an unexpected error: its request id, and nothing else."""
    detail = "something went wrong in the server; its log has more under this request id"
    return Problem(500, CODES[500], detail, {"request_id": request_id})


def invalid_problem(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of values that do not fit a schema; its field is the first of them."""
    named = [
        {"field": _name_field(error), "reason": str(error["msg"])} for error in errors[:MAX_NAMED_ERRORS]
    ]
    first = InvalidInput(**named[0]) if named else InvalidInput("body", "cannot be read")
    return Problem(422, first.code, str(first), {**vars(first), "errors": named})


async def answer_error(request: Request, error: Exception) -> Response:
    """Return the response to an error raised on purpose below the routes; the border logs the others."""
    if isinstance(error, StorageError) and may_be_done(request.scope):
        error = WriteOutcomeUnknown(str(error))
    match error:
        case ConspectusError() if status_of(type(error)) != HTTPStatus.INTERNAL_SERVER_ERROR:
            problem = problem_of(error)
        case Refused():
            problem = error.problem
        case RequestValidationError():
            problem = invalid_problem(error.errors())
        case HTTPException():
            problem = _describe_framework_error(error, request)
        case _:
            raise error
    return answer_problem(problem, request.scope["path"])


def may_be_done(scope: Scope) -> bool:
    """Return whether a request may have stored something, so that no fault may say that nothing was done."""
    commits: Commits | None = scope["state"].get("commits")
    return commits is not None and commits.possible > 0


def _describe_framework_error(error: HTTPException, request: Request) -> Problem:
    """Errors of the framework: an unknown route or method, or a body that cannot be parsed."""
    if isinstance(error.__cause__, ConspectusError):
        return problem_of(error.__cause__)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return problem_of(InvalidInput("body", str(error.detail)))
    headers, detail = dict(error.headers or {}), str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = NO_ROUTE
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = list_methods(request.app.router.routes, request.scope)
        detail = f"this address takes {headers['Allow']}"
    return Problem(error.status_code, CODES.get(error.status_code, "refused"), detail, headers=headers)


def _name_field(error: Mapping[str, Any]) -> str:
    """`documents.0.text` for a place in a body; the bare name for a parameter.

    Between the names of fields, the schema library also names the alternatives that it tried.
    """
    location: Sequence[str | int] = error["loc"]
    if error["type"] == "json_invalid":
        return str(location[0])
    steps = [str(step) for step in location[1:] if FIELD.fullmatch(str(step))]
    return ".".join(steps) or str(location[0])


def has_route(routes: Iterable[BaseRoute], scope: Scope) -> bool:
    """Return whether there is a route for the path and the method of a request."""
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def list_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """Return the methods of all routes for the path of a request, as `Allow` names them."""
    methods: set[str] = set()
    for route in routes:
        if route.matches(scope)[0] is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(methods))

"""Where faults become answers: nothing that was raised gets past it, and no traceback leaves the server."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus.errors import ConspectusError
from conspectus.web.logs import fault_facts
from conspectus.web.problem_details import Problem, Refused, internal, problem_of, shown

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class ErrorMiddleware:
    """Answers for whatever is raised before an answer began, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, log: FilteringBoundLogger) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer for what goes wrong."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def out(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, out)
        except Exception as error:
            log = self._log.bind(request_id=scope["state"]["request_id"])
            problem = self._problem_of(error, log, scope["state"]["request_id"])
            if begun:
                raise
            await shown(problem, scope["path"])(scope, receive, out)

    def _problem_of(self, error: Exception, log: FilteringBoundLogger, request_id: str) -> Problem:
        match error:
            case Refused():
                problem = error.problem
            case ConspectusError():
                problem = problem_of(error)
            case _:
                problem = internal(request_id)
        if problem.status == 500:
            log.error("fault", **fault_facts(error))
        return problem

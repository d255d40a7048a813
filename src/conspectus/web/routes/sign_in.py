"""Sign-in of browsers on the pages of an identity provider, and what the provider sends when they log out."""

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from conspectus.access.browser_sign_ins import CALLBACK_PATH, BrowserSignIns, attempt_of, has_state
from conspectus.errors import InvalidToken, NotFound, TooLarge
from conspectus.web.auth import read_body, require_same_origin, set_session
from conspectus.web.connections import network_of
from conspectus.web.static_documents import StaticDocument

router = APIRouter(include_in_schema=False)
SIGN_IN: Final = "/sign-in"
COOKIE: Final = "conspectus_sign_in"
HOST_PREFIX: Final = "__Host-"
"""A cookie with it is of this host alone and was sent over https: no other host can set it."""
ATTEMPT_SECONDS: Final = 600
MAX_ATTEMPTS: Final = 5
"""Most tabs of a browser with a sign-in that is not complete. The oldest is forgotten."""
SEPARATOR: Final = "."
"""What stands between the secrets in the cookie."""
MAX_LOGOUT_BYTES: Final = 20_000
"""Most bytes of the form that a provider sends."""
CONSOLE: Final = "/console/"
FAILED: Final = f"{CONSOLE}#sign-in=failed"


@router.get(f"{SIGN_IN}/provider")
async def read_provider(request: Request) -> Response:
    """Return the name of the provider, null without one, and the address at which people sign in."""
    provider: StaticDocument = request.app.state.sign_in_provider
    return provider.response(request)


def describe_provider(name: str | None, address: str) -> StaticDocument:
    """Return what the console reads of the provider before anybody has signed in."""
    body = json.dumps({"name": name, "address": address}, separators=(",", ":"))
    return StaticDocument("application/json", plain=body.encode())


@router.get(SIGN_IN)
async def begin_sign_in(request: Request) -> Response:
    """Send a browser to the provider, with a secret of its own in a cookie."""
    sign_ins = sign_ins_of(request)
    require_same_origin(request.scope)
    try:
        address, secret = await sign_ins.begin()
    except InvalidToken:
        return redirect(request, FAILED)
    answer = RedirectResponse(address, 303)
    set_attempts(answer, request, [secret, *read_attempts(request)])
    return answer


@router.get(CALLBACK_PATH)
async def complete_sign_in(request: Request) -> Response:
    """Begin the session of a browser that comes back from the provider. The reason of a failure is logged.

    A browser is only ever sent on to the console, whatever the address of the request says.
    """
    sign_ins = sign_ins_of(request)
    attempt_secrets, parameters = read_attempts(request), dict(request.query_params)
    try:
        _, token = await sign_ins.complete(attempt_secrets, parameters)
    except InvalidToken:
        await request.app.state.failures.note(network_of(request.scope.get("client")))
        answer = redirect(request, FAILED)
    else:
        answer = redirect(request, CONSOLE)
        set_session(answer, request.scope, token, own_address=request.app.state.own_address)
    state = parameters.get("state", "")
    others = [secret for secret in attempt_secrets if not has_state(attempt_of(secret), state)]
    set_attempts(answer, request, others)
    return answer


@router.get(f"{SIGN_IN}/end")
async def end_provider_session(request: Request) -> Response:
    """Send a browser that logged out to the page of the provider that ends its session there."""
    sign_ins = sign_ins_of(request)
    require_same_origin(request.scope)
    back = f"{request.app.state.own_address}{CONSOLE}"
    return RedirectResponse(await sign_ins.sign_out_address(back), 303)


@router.post(f"{SIGN_IN}/back-channel-logout")
async def end_sessions(request: Request) -> Response:
    """End the sessions that the provider names in a logout token (OpenID Connect Back-Channel Logout)."""
    sign_ins = sign_ins_of(request)
    try:
        form = parse_qs((await read_body(request.receive, MAX_LOGOUT_BYTES)).decode("ascii", "replace"))
        await sign_ins.end_sessions(form.get("logout_token", [""])[0])
    except (InvalidToken, TooLarge):
        await request.app.state.failures.note(network_of(request.scope.get("client")))
        return JSONResponse({"error": "invalid_request"}, 400)
    return Response()


def sign_ins_of(request: Request) -> BrowserSignIns:
    """Return the sign-ins of this server. Raises NotFound if the settings name no client."""
    sign_ins: BrowserSignIns | None = request.app.state.browser_sign_ins
    if sign_ins is None:
        raise NotFound("page", request.url.path)
    return sign_ins


def redirect(request: Request, path: str) -> Response:
    """Send a browser to a page of this server."""
    return RedirectResponse(f"{request.app.state.own_address}{path}", 303)


def has_https(request: Request) -> bool:
    """Return whether people reach this server over https."""
    address: str = request.app.state.own_address
    return address.startswith("https://")


def attempt_cookie(request: Request) -> str:
    """Return the name of the cookie of sign-ins, with the port: browsers send a cookie to all ports."""
    if has_https(request):
        return f"{HOST_PREFIX}{COOKIE}"
    _, _, port = Headers(scope=request.scope).get("host", "").rpartition(":")
    return f"{COOKIE}_{port}" if port.isascii() and port.isdecimal() else COOKIE


def read_attempts(request: Request) -> list[str]:
    """Return the secrets of the sign-ins that a browser began, newest first. Each tab has its own."""
    cookie = cookie_parser(request.headers.get("cookie", "")).get(attempt_cookie(request), "")
    return [secret for secret in cookie.split(SEPARATOR) if secret][:MAX_ATTEMPTS]


def set_attempts(answer: Response, request: Request, attempt_secrets: Sequence[str]) -> None:
    """Set the cookie of sign-ins, which the browser sends when it comes back; without any, delete it."""
    answer.set_cookie(
        attempt_cookie(request),
        SEPARATOR.join(attempt_secrets[:MAX_ATTEMPTS]),
        ATTEMPT_SECONDS if attempt_secrets else 0,
        secure=has_https(request),
        httponly=True,
        samesite="lax",
    )

"""The connection to a server, and to its identity provider."""

from dataclasses import replace

import httpx
import pytest

from conspectus.client.connection import MAX_ISSUER_SECONDS, issuer_client
from conspectus.settings import Settings


@pytest.mark.parametrize(("seconds", "wait"), [(90, MAX_ISSUER_SECONDS), (5, 5)])
async def test_a_provider_that_hangs_ends_a_command_soon(seconds: int, wait: int) -> None:
    settings = replace(Settings(), client_timeout_seconds=seconds)
    async with issuer_client(settings) as http:
        assert http.timeout == httpx.Timeout(wait)

"""What a client needs to get a token for this server: the metadata of RFC 9728, and where they are."""

from typing import Any, Final

from conspectus.access.token_claims import TokenRules
from conspectus.mcp.tool import HTTP_PATHS as MCP_PATHS
from conspectus.settings import Settings

METADATA_PATH: Final = "/.well-known/oauth-protected-resource"
DEVICE_CLIENT: Final = "conspectus_device_client_id"
"""The member of the metadata that `conspectus login` reads."""
RESOURCES: Final = ("", *sorted(MCP_PATHS))
"""The paths of the resources, which follow `METADATA_PATH`; the API is the server itself."""


def metadata_of(path: str, rules: TokenRules, settings: Settings) -> dict[str, Any]:
    """Return the metadata of the resource at a path, with the client of our command line, if there is one."""
    client = settings.oidc_device_client_id
    own_members = {DEVICE_CLIENT: client} if client else {}
    return {
        "resource": f"{settings.own_address}{path}",
        "resource_name": "Conspectus",
        "authorization_servers": [rules.issuer],
        "bearer_methods_supported": ["header"],
        "scopes_supported": rules.scopes_supported,
        **own_members,
    }


def challenge_of(path: str, settings: Settings, *, had_token: bool) -> str:
    """Return the `WWW-Authenticate` header of a request that nobody is known for."""
    resource = path if path in MCP_PATHS else ""
    error = 'error="invalid_token", ' if had_token else ""
    return f'Bearer {error}resource_metadata="{settings.own_address}{METADATA_PATH}{resource}"'

"""Hosts that connectors reach by protocols other than HTTP, checked before a connection is opened."""

from collections.abc import Sequence
from ipaddress import ip_address

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, ForbiddenAddress
from conspectus.settings import Settings
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, literal, resolve_name


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The `HostResolver` port. `policy` says which addresses are allowed, `look_up` finds those of a name."""

    policy: AddressPolicy
    look_up: Resolve = resolve_name

    @classmethod
    def from_settings(cls, settings: Settings) -> "AllowedHosts":
        """Return the hosts that the settings allow."""
        return cls(AddressPolicy.from_entries(settings.fetch_allowed_networks.split(",")))

    async def resolve(self, host: str, port: int, *, shown: str = "") -> Sequence[str]:
        """Return the addresses of a host. Errors name it as `shown`.

        Raises ForbiddenAddress unless all of them are allowed, and FetchFailed for an unknown host.
        """
        shown = shown or host
        if not self.policy.may_ask(host):
            raise ForbiddenAddress(shown)
        try:
            addresses = [host] if literal(host) is not None else await self.look_up(host, port)
        except OSError as fault:
            raise FetchFailed(shown, fault.strerror or "unknown host", passing=True) from fault
        if not addresses:
            raise FetchFailed(shown, "unknown host", passing=True)
        if not all(self.policy.is_allowed(host, ip_address(address)) for address in addresses):
            raise ForbiddenAddress(shown)
        return addresses

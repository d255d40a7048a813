"""What is wrong with an issuer that publishes usable metadata: its clock, and flows that it lacks."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from conspectus.errors import FetchFailed, InvalidInput, TooLarge
from conspectus.ports.web import Fetcher
from conspectus.providers.issuer_metadata import METADATA_PATH, IssuerFault, read_endpoint, read_json

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
DEVICE_FAULT: Final = "`conspectus login` does not work"
DEVICE_ADVICE: Final = "switch the device flow on, or empty CONSPECTUS_OIDC_DEVICE_CLIENT_ID"


class IssuerCheck:
    """Asks an issuer once more, for an operator who wants to know why people cannot sign in."""

    def __init__(
        self,
        issuer: str,
        fetcher: Fetcher,
        *,
        max_skew: int,
        has_device_client: bool,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._address = issuer.rstrip("/") + METADATA_PATH
        self._fetcher = fetcher
        self._max_skew = max_skew
        self._has_device_client = has_device_client
        self._now = now

    async def find_problems(self) -> Sequence[str]:
        """Return a sentence for each problem; none for an issuer that is away, which others report."""
        try:
            response = await self._fetcher.fetch(self._address, headers={"Accept": "application/json"})
            metadata = read_json(response)
        except (FetchFailed, TooLarge, InvalidInput, IssuerFault):
            return []
        problems = self._compare_clocks(response.headers.get("date"))
        if not self._has_device_client:
            return problems
        try:
            read_endpoint(metadata, "device_authorization_endpoint")
        except IssuerFault as fault:
            return [*problems, f"{DEVICE_FAULT}: {fault}; {DEVICE_ADVICE}"]
        grants = metadata.get("grant_types_supported")
        if isinstance(grants, list) and DEVICE_GRANT not in grants:
            return [
                *problems,
                f"{DEVICE_FAULT}: the issuer does not name its grant among `grant_types_supported`;"
                f" {DEVICE_ADVICE}",
            ]
        return problems

    def _compare_clocks(self, date: str | None) -> list[str]:
        """Return a sentence if the clocks differ by more than tokens may, and the answer has a time."""
        try:
            issuer_time = parsedate_to_datetime(date or "")
        except ValueError:
            return []
        if issuer_time.tzinfo is None:
            return []
        seconds = round(abs((self._now() - issuer_time).total_seconds()))
        if seconds <= self._max_skew:
            return []
        return [
            f"tokens may be refused: the clocks of the issuer and of this server differ by {seconds:,} s, and"
            f" CONSPECTUS_OIDC_CLOCK_SKEW_SECONDS allows {self._max_skew}; set clocks by NTP"
        ]

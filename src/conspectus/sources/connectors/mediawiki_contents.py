"""The contents of pages, asked for some at a time, in the order they were listed."""

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.errors import TooLarge
from conspectus.model.connections import ConnectorEntry
from conspectus.sources.connectors.mediawiki_api import Answer, MediaWikiApi

AHEAD = 20
ASKED: Mapping[str, str] = {
    "prop": "info|revisions", "inprop": "url", "rvprop": "ids|content", "rvslots": "main",
}  # fmt: skip


class Contents:
    """Reads pages, and those listed behind them along with each."""

    def __init__(self, api: MediaWikiApi) -> None:
        self._api = api
        self._order: list[str] = []
        self._places: dict[str, int] = {}
        self._ahead: dict[str, dict[str, Any]] = {}

    def expect(self, entries: Sequence[ConnectorEntry]) -> None:
        """These pages will be asked for, most likely in this order."""
        self._order = [each.key for each in entries]
        self._places = {key: place for place, key in enumerate(self._order)}
        self._ahead = {}

    async def of(self, key: str) -> Answer:
        """What the wiki says of a page, with its content if it exists. Raises FetchFailed or TooLarge."""
        if key not in self._ahead:
            place = self._places.get(key)
            some = [key] if place is None else self._order[place : place + AHEAD]
            self._ahead = await self._ask(some)
        return self._ahead.pop(key, {"missing": True})

    async def _ask(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        try:
            answers = await self._api.pages("pageids", keys, **ASKED)
        except TooLarge:
            if len(keys) == 1:
                raise
            return await self._ask(keys[:1])
        found: dict[str, dict[str, Any]] = {}
        with self._api.understood():
            for each in answers:
                found.setdefault(str(each["pageid"]), {}).update(each)
        return found

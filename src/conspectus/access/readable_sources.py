"""What people may read in collections with mirrored sources, cached until anything of that changes."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Final, TypeAlias

from conspectus.access.policy import includes_role, with_verified, without_hidden
from conspectus.deferred import dataclass
from conspectus.model.access import Access, Person
from conspectus.model.filter import among_sources
from conspectus.model.ids import SourceId, UserId
from conspectus.model.records import Collection
from conspectus.ports import Clock, Records
from conspectus.ports.accounts import Accounts
from conspectus.ports.remote_checks import RemoteChecks

_Key: TypeAlias = tuple[object, ...]

MAX_CACHED_SOURCES: Final = 400_000
"""Maximum number of readable and hidden sources of all people together: some 100 MB."""


@dataclass(frozen=True, slots=True)
class _CachedAccess:
    """Access that is valid for a version, from `since` to `until`, when a source becomes hidden."""

    access: Access
    version: int
    since: datetime
    until: datetime | None

    @property
    def size(self) -> int:
        """The number of sources that it names."""
        return len(self.access.sources) + len(self.access.hidden) + len(self.access.verified)

    def is_valid(self, version: int, now: datetime) -> bool:
        """Return whether it is what a fresh read would return."""
        return self.version == version and self.since <= now and (self.until is None or now < self.until)


class ReadableSources:
    """Removes sources that a person may not read from their access, as of now.

    A cached access has the version that was read before it, and is returned only while that is the current
    one. So it is never older than the last change.
    """

    def __init__(
        self,
        records: Records,
        accounts: Accounts,
        clock: Clock,
        checks: RemoteChecks | None = None,
        max_sources: int = MAX_CACHED_SOURCES,
    ) -> None:
        self._records = records
        self._accounts = accounts
        self._clock = clock
        self._checks = checks
        self._cache: OrderedDict[_Key, _CachedAccess] = OrderedDict()
        self._max_sources = max_sources
        self._cached_sources = 0
        self._lock = Lock()

    async def restrict(self, person: Person, collection: Collection, roles: Access) -> Access:
        """Return the roles of a person in a collection without what is hidden from them now."""
        if not collection.mirrors:
            return (await self._read(person, collection, roles, 0)).access
        version = await self._accounts.viewers_version(collection.id)
        grants = roles.collection, frozenset(roles.sources.items())
        key = (collection.id, person.id, person.seen_by, person.syncs, *grants)
        now = self._clock()
        with self._lock:
            cached = self._cache.get(key)
            if cached is not None and cached.is_valid(version, now):
                self._cache.move_to_end(key)
                return cached.access
        fresh = await self._read(person, collection, roles, version)
        self._store(key, fresh)
        return fresh.access

    def _store(self, key: _Key, fresh: _CachedAccess) -> None:
        with self._lock:
            former = self._cache.pop(key, None)
            self._cache[key] = fresh
            self._cached_sources += fresh.size - (0 if former is None else former.size)
            while self._cached_sources > self._max_sources and len(self._cache) > 1:
                _, oldest = self._cache.popitem(last=False)
                self._cached_sources -= oldest.size

    async def _read(
        self, person: Person, collection: Collection, roles: Access, version: int
    ) -> _CachedAccess:
        now = self._clock()
        # A source that is added after this read stays unreadable, whoever its viewers are.
        sources = await self._records.sources(collection.id) if collection.mirrors else None
        hidden_from: Mapping[SourceId, datetime] = {}
        if not includes_role(roles.collection, "manager"):
            hidden_from = await self._accounts.list_hidden_sources(collection.id)
        hidden = [source for source, instant in hidden_from.items() if instant <= now]
        until = min((instant for instant in hidden_from.values() if instant > now), default=None)
        unreadable = await self.list_unreadable(person, collection)
        verified = await self._list_verified(person, collection)
        if not hidden and not unreadable and not verified:
            return _CachedAccess(roles, version, now, until)
        if sources is None:
            sources = await self._records.sources(collection.id)
        access = without_hidden(roles, [source.id for source in sources], hidden, unreadable)
        access = with_verified(access, [source.id for source in sources], verified)
        if access.sources:
            access = replace(access, readable=among_sources(access.sources))
        return _CachedAccess(access, version, now, until)

    async def _list_verified(self, person: Person, collection: Collection) -> Mapping[SourceId, str]:
        """Return the sources whose documents a remote is asked for. A sync reads what its connection has."""
        if not collection.mirrors or self._checks is None:
            return {}
        verified: dict[SourceId, str] = {}
        for remote in await self._checks.list_verifying(collection.id):
            if remote != person.syncs:
                verified |= dict.fromkeys(await self._accounts.list_mirrored_sources(remote), remote)
        return verified

    async def list_unreadable(self, person: Person, collection: Collection) -> list[SourceId]:
        """Return the mirrored sources that a person may not read, nor the user who sees as them."""
        sources = await self.list_unreadable_by(person.id, collection, syncs=person.syncs)
        if person.seen_by is not None:
            sources += await self.list_unreadable_by(person.seen_by, collection)
        return sources

    async def list_unreadable_by(
        self, user: UserId, collection: Collection, *, syncs: str | None = None
    ) -> list[SourceId]:
        """Return the mirrored sources that a user is no viewer of. A sync reads what its connection has."""
        if not collection.mirrors:
            return []
        unreadable = await self._accounts.list_unreadable_sources(collection.id, user)
        return [source for source, remote in unreadable.items() if remote != syncs]

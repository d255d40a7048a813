"""A small cache of results that repeat."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


class RecentResults(Generic[Key, Result]):
    """A small cache of the last results by key."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._results: OrderedDict[Key, Result] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, compute: Callable[[], Result]) -> Result:
        """Return the cached result of the key, computed if it is missing."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        fresh = compute()
        with self._lock:
            self._results[key] = fresh
            if len(self._results) > self._maximum:
                self._results.popitem(last=False)
        return fresh

"""Notices about what was not read: counts by reason, each with the first places."""

from collections.abc import Iterator

from conspectus.text.clean import clean

MAX_NAMED_PLACES = 5
MAX_PLACE_LENGTH = 200


class Notices:
    """Counts by reason, each with the first places."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}
        self.damage = False

    def note(self, reason: str, location: str | None = None) -> None:
        """Count one more."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        places = self._places.setdefault(reason, [])
        if location is not None and len(places) < MAX_NAMED_PLACES:
            places.append(clean(location[:MAX_PLACE_LENGTH]))

    def count_damage(self, reason: str, location: str) -> None:
        """Count one more that should have been readable."""
        self.damage = True
        self.note(reason, location)

    def reasons(self) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Yield each reason with its number and its first places, in order of first occurrence."""
        for reason, count in self._counts.items():
            yield reason, count, tuple(self._places[reason])

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each reason, in order of first occurrence."""
        return tuple(self._sentence(reason, count) for reason, count in self._counts.items())

    def _sentence(self, reason: str, count: int) -> str:
        places = self._places[reason]
        more = ", …" if 0 < len(places) < count else ""
        return f"{reason}: {count}" + (f" ({', '.join(places)}{more})" if places else "")

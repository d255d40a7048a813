"""What was left out of an export or changed in it, counted by reason."""

from conspectus.text.clean import clean

NAMED = 5
LONGEST_PLACE = 200


class Notices:
    """Counts by reason, each with the first places it was met in."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}
        self.damage = False

    def note(self, reason: str, place: str | None = None) -> None:
        """Count one more."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        places = self._places.setdefault(reason, [])
        if place is not None and len(places) < NAMED:
            places.append(clean(place[:LONGEST_PLACE]))

    def damaged(self, reason: str, place: str) -> None:
        """Count one more that should have been readable."""
        self.damage = True
        self.note(reason, place)

    def sentences(self) -> tuple[str, ...]:
        """A sentence for each reason, in the order in which they were met."""
        return tuple(self._sentence(reason, count) for reason, count in self._counts.items())

    def _sentence(self, reason: str, count: int) -> str:
        places = self._places[reason]
        more = ", …" if 0 < len(places) < count else ""
        return f"{reason}: {count}" + (f" ({', '.join(places)}{more})" if places else "")

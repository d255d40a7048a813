"""Parts of a stream: beginning and end, halves and thirds, "the first five minutes", "five minutes in"."""

from datetime import datetime
from typing import Final

from conspectus.time_expressions.language import DAY, SECOND, Amount, Language, Words
from conspectus.time_expressions.points import ClockFace, Point, PointReader, Read, shifted

_EDGE_SHARE: Final = 0.1
_MIN_EDGE: Final = 30.0
_MAX_EDGE: Final = 300.0
_LAST: Final = -1
_THIRDS: Final = 3


class PartReader:
    """Reads parts of a stream at a token position.

    The beginning, the end and the middle are a tenth of the stream, but at least 30 seconds and at most five
    minutes (the middle: to both sides).
    """

    def __init__(self, words: Words, language: Language, face: ClockFace, points: PointReader) -> None:
        self._words = words
        self._language = language
        self._face = face
        self._points = points
        self._length = (face.end - face.begin).total_seconds()

    def part(self, index: int) -> Read:
        """Return the part at a position, without an `of …` after it."""
        text = self._words.text
        article = text(index) in self._language.articles
        edge = index + article + (text(index + article) in self._language.stresses)
        counted = self._counted(index + article, article=article) or self._middle(index)
        if counted is not None or not article:
            return counted
        if text(edge) in self._language.middle and self.recording(edge + 1) is not None:
            return self._halfway(), edge + 1
        if text(edge) in self._language.beginnings and self._edge_ends(edge + 1):
            return self._beginning(), edge + 1
        ends = text(edge) in self._language.ends and self._edge_ends(edge + 1)
        return (self._ending(), edge + 1) if ends else None

    def start_or_end(self, index: int) -> Read:
        """Match `how does the video end?`, but not `how does the fight end?`."""
        text, language = self._words.text, self._language
        if text(index) not in language.hows or text(index + 1) not in language.does:
            return None
        of = index + 2 + (text(index + 2) in language.articles)
        if text(of) not in language.recordings or not self._words.over(of + 2):
            return None
        if text(of + 1) in language.begins:
            return self._beginning(), of + 2
        return (self._ending(), of + 2) if text(of + 1) in language.finishes else None

    def place(self, index: int) -> Read:
        """Match `5 minutes in`, `1h2m into the video`, `the 5 minute mark`, `ten minutes ago`."""
        index += self._words.text(index) in self._language.articles
        read = self._points.amounts.amount(index)
        if read is None:
            return None
        amount, after = read
        word = self._words.text(after)
        if word in self._language.marks:
            return self._points.at(amount.seconds, amount.unit), after + 1
        if amount.describes or not self.fits(amount):
            return None
        if word in self._language.ago and (self._face.live or self._face.wall):
            begins = shifted(self._face.now if self._face.wall else self._face.end, -amount.seconds)
            return Point(begins, shifted(begins, amount.unit), amount.unit, "place"), after + 1
        end = self.goes_in(after)
        return None if end is None else (self._points.at(amount.seconds, amount.unit), end)

    def goes_in(self, index: int) -> int | None:
        """Return the end of the `in` of `5 minutes in`, or of `into the video`; None if neither matches."""
        word = self._words.text(index)
        if word in self._language.inside and self._aside(index + 1):
            return index + 1
        return self.recording(index) if word in self._language.inside | self._language.into else None

    def amount(self, index: int) -> Read:
        """Return an amount as a position, unless the following words make it a length."""
        read = self._points.amounts.amount(index)
        if read is None or read[0].describes or not self.fits(read[0]):
            return None
        if self._words.text(read[1]) in self._language.lengths and self.recording(read[1]) is None:
            return None
        if self._words.text(read[1] - 1) in self._language.ordinals and not self._clear(read[1]):
            return None
        return self._points.at(read[0].seconds, read[0].unit, kind="amount"), read[1]

    def edge(self, index: int) -> Read:
        """Return the beginning or the end as an instant."""
        index += self._words.text(index) in self._language.articles
        word = self._words.text(index)
        if word in self._language.beginnings:
            return Point(self._face.begin, self._face.begin, SECOND, "part"), index + 1
        return (
            (Point(self._face.end, None, SECOND, "end"), index + 1) if word in self._language.ends else None
        )

    def recording(self, index: int) -> int | None:
        """Return the end of `of the video`, `into the recording`, `in it`; None for other objects."""
        if self._words.text(index) not in self._language.of | self._language.inside | self._language.into:
            return None
        index += 1 + (self._words.text(index + 1) in self._language.articles)
        return index + 1 if self._words.text(index) in self._language.recordings else None

    def of_another(self, index: int) -> bool:
        """Return whether an `of` makes it a part of something other than the stream."""
        return self._words.text(index) in self._language.of and self.recording(index) is None

    def fits(self, amount: Amount) -> bool:
        """Return whether an amount is plausible for this clock: recordings are not days long."""
        return self._face.wall or amount.unit < DAY

    def _clear(self, index: int) -> bool:
        """Return whether the word is not something that `a second` may count."""
        return self._aside(index) or self._words.text(index) in self._language.articles

    def _over(self, index: int) -> bool:
        """Return whether the phrase ends here: `the last minute`, but not `the last minute changes`."""
        return self._aside(index) or self.recording(index) is not None

    def _edge_ends(self, index: int) -> bool:
        """Return whether the phrase ends here: `the start`, but not `the start line`."""
        word = self._words.text(index)
        related = any(word == words[0] for words in self._language.relations)
        return self._clear(index) or related or word in self._language.of | self._language.conjunction

    def _aside(self, index: int) -> bool:
        return self._words.over(index) or self._words.text(index) in self._language.asides

    def _edge_length(self) -> float:
        return min(max(self._length * _EDGE_SHARE, _MIN_EDGE), _MAX_EDGE)

    def _beginning(self) -> Point:
        begin = self._face.begin
        return Point(begin, shifted(begin, self._edge_length()), SECOND, "part")

    def _ending(self) -> Point:
        start = max(shifted(self._face.end, -self._edge_length()), self._face.begin)
        return Point(start, None, SECOND, "end")

    def _middle(self, index: int) -> Read:
        """Match `halfway`, `midway through the video`, but not `halfway through the recipe`."""
        if self._words.text(index) not in self._language.middles:
            return None
        through = self._words.text(index + 1) in self._language.into
        bare = through and self._aside(index + 2)
        if not bare and not self._over(index + 1):
            return None
        return self._halfway(), index + 1 + bare

    def _halfway(self) -> Point:
        middle = shifted(self._face.begin, self._length / 2)
        around = self._edge_length()
        start = max(shifted(middle, -around), self._face.begin)
        return Point(start, shifted(middle, around), SECOND, "part", bare=True)

    def _counted(self, index: int, *, article: bool) -> Read:
        """Match `first five minutes`, `last third`, `second half`, but not `last minute change`."""
        place = self._ordinal(index)
        if place is None:
            return None
        fraction = self._language.fractions.get(self._words.text(index + 1))
        if fraction is not None and self._points.amounts.amount(index + 1) is None:
            return self._share(place, fraction, index + 2) if place <= fraction and article else None
        return self._stretch(place, index, article=article)

    def _stretch(self, place: int, index: int, *, article: bool) -> Read:
        one = self._points.amounts.one(index + 1)
        read = self._points.amounts.amount(index + 1) if one is None else one
        if read is None or read[0].describes or not self.fits(read[0]):
            return None
        amount, after = read
        if one is not None and not self._over(after):
            return None
        start, end = self._nth(place, amount.seconds)
        return Point(start, end, amount.unit, "stretch", bare=article or one is None), after

    def _ordinal(self, index: int) -> int | None:
        word = self._words.text(index)
        if word in self._language.latest:
            return _LAST
        if word in self._language.middle:
            return 2 if self._language.fractions.get(self._words.text(index + 1)) == _THIRDS else None
        if self._words.ending(index) in self._language.ordinal_endings and word.isdigit():
            return int(word) or None
        return self._language.ordinals.get(word)

    def _nth(self, place: int, seconds: float) -> tuple[datetime, datetime | None]:
        begin = self._face.begin
        if place == _LAST:
            return max(shifted(self._face.end, -seconds), begin), None
        return shifted(begin, (place - 1) * seconds), shifted(begin, place * seconds)

    def _share(self, place: int, parts: int, after: int) -> tuple[Point, int]:
        """Return a half, third or quarter. The last one extends to the end."""
        number = parts if place == _LAST else place
        begin, share = self._face.begin, self._length / parts
        end = None if number == parts else shifted(begin, number * share)
        start = shifted(begin, (number - 1) * share)
        return Point(start, end, SECOND, "part", bare=self._over(after)), after

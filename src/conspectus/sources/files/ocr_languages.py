"""The language of a scanned file: Tesseract is faster with the one that it needs than with several."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field

from conspectus.deferred import dataclass

ALL_LANGUAGES = ""
MAX_ENGINES = 6
"""More languages are always recognized at once: each engine takes about 10 MB of memory."""
MIN_WORDS = 50
MIN_LANGUAGE_SHARE = 0.85
"""Share of the words of a page in one language; some words of an English page look German."""
MAX_CONFIDENCE_LOSS = 2.0
"""Pages of another language are recognized with a confidence that is 3 to 7 points lower."""


@dataclass(slots=True)
class LanguageChoice:
    """Chooses the language that the next page of a file is recognized in.

    It is that of the last page that was recognized in all languages, if that has one. A page whose confidence
    falls is to be recognized in all languages again.
    """

    languages: Collection[str]
    current: str = field(default=ALL_LANGUAGES)
    min_confidence: float = field(default=0.0)

    def begin_file(self) -> None:
        """Forget the language of the file before."""
        self.current = ALL_LANGUAGES

    def suits(self, confidence: float) -> bool:
        """Return whether a page of this mean confidence is in the current language."""
        if self.current == ALL_LANGUAGES:
            return True
        is_suitable = confidence >= self.min_confidence
        self.min_confidence = max(self.min_confidence, confidence - MAX_CONFIDENCE_LOSS)
        return is_suitable

    def learn(self, word_languages: Sequence[str], confidence: float) -> None:
        """Choose by the language of each word of a page that was recognized in all languages."""
        self.current = ALL_LANGUAGES
        for language, words in Counter(word_languages).most_common(1):
            is_frequent = words >= max(MIN_WORDS, MIN_LANGUAGE_SHARE * len(word_languages))
            if is_frequent and language in self.languages:
                self.current = language
                self.min_confidence = confidence - MAX_CONFIDENCE_LOSS

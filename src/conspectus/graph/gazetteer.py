"""A gazetteer of the names that a collection knows, with word lists and English plurals."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

import ahocorasick
import regex

from conspectus.deferred import dataclass
from conspectus.model.graph import ENTITY
from conspectus.text.late_patterns import regex_pattern


def _set_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES: Final = _set_of(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess pope saint emperor "
    "empress president senator governor captain colonel general lieutenant sergeant major admiral "
    "commander chancellor minister judge justice bishop archbishop cardinal rabbi sheikh sultan tsar duke "
    "duchess count countess baron earl uncle aunt gen col lt sgt capt rev hon sen rep gov pres coach "
    "prime vice deputy chairman chairwoman director mayor spokesman spokeswoman secretary representative "
    "detective officer chief marshal manager doge pharaoh midshipman ambassador premier sheriff inspector "
    "elector"
)
"""Titles before names of people. A title alone is not a name."""
ORGANISATIONS: Final = _set_of(
    "inc ltd llc corp co plc gmbh ag company companies corporation group holdings university college "
    "school institute academy committee commission council agency ministry department bureau office bank "
    "association society federation union league party club foundation trust museum library hospital "
    "church orchestra band records pictures studios entertainment press army navy corps force forces "
    "police court parliament congress senate assembly board authority network airlines airways team fc "
    "united motors systems software technologies laboratories labs center centre alliance organization "
    "organisation service services administration government program campaign order brigade regiment "
    "division railway times news"
)
"""Words at the end of names of organizations, or at the start before `of` and `for`."""
PLACES: Final = _set_of(
    "river lake mountain mountains mount island islands county city town village state province district "
    "region street road avenue square park bay sea ocean gulf strait valley peninsula bridge airport "
    "station desert forest beach canal cape castle coast creek hill hills falls harbor harbour port plaza "
    "republic kingdom territory township borough municipality parish stadium temple palace tower highway "
    "house hall"
)
"""Words at the end of names of places, or at the start before `of`."""
NOBLE: Final = _set_of("prince princess duke duchess count countess baron earl lord lady")
"""Titles that are part of the name if `of` follows."""
DIRECTIONS: Final = _set_of(
    "new old north south east west northern southern eastern western great central upper lower inner outer "
    "saint st san santa los las le la el super inter mid trans"
)
"""First words that distinguish a name from the same name without them."""
EVENTS: Final = _set_of(
    "olympics olympic championships championship cup games series season tour open masters bowl summit "
    "election elections census festival war revolution grand world summer winter winter_olympics prix act "
    "convention treaty conference expo tournament marathon classic award awards"
)
"""Words that form a name with a preceding year."""
FUNCTION_WORDS: Final = _set_of(
    "congrats glad bye aww woah whoa yay yeah yep yup nah hmm haha hooray cool great sure y'all "
    "a an the i me my mine we us our ours you your yours he she his her hers him it its they them their "
    "theirs this that these those who whom whose which what when where why how whether if unless until "
    "while since because although though despite after before during within without under above below "
    "across through throughout against along around behind beyond beside besides toward towards among "
    "between like unlike as at by for from in into of off on onto or out over per to up upon via with and "
    "but nor so yet then than there here now once again always never often sometimes usually perhaps "
    "maybe also however therefore moreover furthermore meanwhile instead additionally finally initially "
    "originally currently recently previously eventually subsequently thus hence later today yesterday "
    "tomorrow every each any some several many few most much more less all both either neither no not "
    "none other others another such same own first second third last next early born following according "
    "including based am is are was were be been being do does did have has had can could should would "
    "will shall may might must let yes ok okay hi hello hey thanks thank please sorry well oh wow lol one "
    "two three four five six seven eight nine ten see got just only even still too very i'm i've i'd i'll "
    "it's that's there's don't didn't let's what's he's she's we're you're they're isn't aren't can't "
    "won't wasn't"
)
"""Words that start a sentence before a name but are not part of it."""
PRONOUNS: Final = _set_of("i you we they he she it")
BEFORE_VERBS: Final = _set_of(
    "that who to would will can could should might must do does did don't didn't really just also always "
    "never ll d ve t not"
)
"""A possible verb after one of these words is a verb."""


@cache
def listed_words() -> tuple[str, ...]:
    """Return the words that are mostly written in lower case, most frequent first."""
    return tuple(files("conspectus.graph").joinpath("lower_words.txt").read_text("utf-8").split())


@cache
def common_words() -> frozenset[str]:
    """Return the listed words and all function words as a set."""
    return frozenset(listed_words()) | FUNCTION_WORDS


def singular_of(key: str) -> str | None:
    """Return the likely singular of an English key; None if it does not look like a plural."""
    if len(key) < 4 or not key.endswith("s") or key.endswith(("ss", "us", "is")):
        return None
    if key.endswith("ies"):
        return f"{key[:-3]}y"
    return key[:-2] if key.endswith(("ches", "shes", "xes", "sses", "zes", "oes")) else key[:-1]


def plural_of(key: str) -> str:
    """Return the regular English plural of a key."""
    if key.endswith("y") and key[-2:-1] not in "aeiou":
        return f"{key[:-1]}ies"
    return f"{key}es" if key.endswith(("s", "x", "z", "ch", "sh", "to")) else f"{key}s"


MAX_KNOWN_LENGTH: Final = 200
"""Maximum length of a known name in characters. Longer names are ignored."""
_MAX_WORDS: Final = 12
_WORD: Final = regex_pattern(r"[\p{L}\p{M}\p{N}_]++")
_ARTICLE: Final = regex_pattern(r"(?:the|an?)\s+(?=\S)", regex.IGNORECASE)
_SPELT: Final = {0x2019: "'", 0x2018: "'", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x00A0: " "}
_TELLING: Final = regex_pattern(r"[^\p{L}\p{M}\p{N}_\s.,'\u2019!?:;()\"-]")
_GAP: Final = regex_pattern(r"[^\S\n]{0,3}\n?[^\S\n]{0,3}|[-.'\u2019&/]| & ")
_STOPPED: Final = regex_pattern(r"\.[^\S\n]")
_SHORT: Final = 3


@dataclass(frozen=True, slots=True)
class Spelling:
    """A spelling of a known name, and the names that have it."""

    text: str
    type: str
    names: tuple[str, ...]
    any_case: bool


@dataclass(frozen=True, slots=True)
class KnownSpan:
    """A known name at a position in a text."""

    start: int
    end: int
    spelling: Spelling


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text in lower case, joined by spaces, with their positions in both texts."""

    joined: str
    begins: Sequence[int]
    spans: Sequence[tuple[int, int]]


class Gazetteer:
    """Finds known names and aliases in a text.

    A spelling in lower case is a common noun. It matches in any case and in the plural, but not as a verb.
    Other spellings match with their capitals or in all capitals. In lower case they match only if the
    spelling is not a common word. Acronyms match only as written. A leading article is not part of a name.
    Spaces, hyphens and full stops between words are equivalent.
    """

    def __init__(
        self,
        names: Mapping[str, Iterable[str]],
        types: Mapping[str, str] | None = None,
        *,
        skip: Set[str] = FUNCTION_WORDS,
    ) -> None:
        """Compile the spellings of `names`, a mapping from name (or id) to spellings.

        `types` has the type of each name. Words in `skip` are ignored unless they are acronyms.
        """
        self._automaton = ahocorasick.Automaton()
        self._spellings: dict[str, list[Spelling]] = {}
        meant: dict[str, dict[str, None]] = {}
        for name, spellings in names.items():
            for spelling in spellings:
                for variant in _ways(" ".join(spelling.split()), skip):
                    meant.setdefault(variant, {})[name] = None
        for plural, single in _plurals(meant).items():
            meant[plural] = dict(meant[single])
        for text, owners in meant.items():
            self._add(text, tuple(owners), (types or {}).get(next(iter(owners)), ENTITY))
        for joined, written in self._spellings.items():
            written.sort(key=lambda spelling: (not _TELLING.search(spelling.text), spelling.text))
            self._automaton.add_word(f" {joined} ", joined)
        if self._spellings:
            self._automaton.make_automaton()

    def _add(self, text: str, owners: tuple[str, ...], kind: str) -> None:
        joined = _words(text).joined.strip()
        if joined and len(text) <= MAX_KNOWN_LENGTH and joined.count(" ") < _MAX_WORDS:
            any_case = text == text.lower() or not (text.isupper() or joined in common_words())
            self._spellings.setdefault(joined, []).append(Spelling(text, kind, owners, any_case))

    def __len__(self) -> int:
        return len(self._spellings)

    def find(self, text: str) -> list[KnownSpan]:
        """Return the known names in order, without overlaps; the longest match is preferred."""
        if not self._spellings:
            return []
        spans: list[KnownSpan] = []
        done = 0
        for span in sorted(self._matches(text), key=lambda span: (span.start, -span.end)):
            if span.start >= done:
                spans.append(span)
                done = span.end
        return spans

    def _matches(self, text: str) -> Iterator[KnownSpan]:
        words = _words(text)
        for last, joined in self._automaton.iter(words.joined):
            first = bisect_left(words.begins, last - len(joined))
            ending = first + joined.count(" ")
            start, end = words.spans[first][0], words.spans[ending][1]
            if not _connected(text, words.spans[first : ending + 1]):
                continue
            spelling = _fitting(self._spellings[joined], text, start, end)
            if spelling is not None and not (spelling.text.islower() and _verb(text, words.spans, first)):
                yield KnownSpan(start, _with_marks(spelling.text, text, end), spelling)


def _ways(spelling: str, skip: Set[str]) -> Iterator[str]:
    """Return variants of a spelling without article and without apostrophes; none for skipped words."""
    bare = _ARTICLE.sub("", spelling, count=1) if _ARTICLE.match(spelling) else spelling
    if bare.lower() not in skip or (len(bare) > 1 and bare.isupper()):
        yield bare if bare.lower() not in common_words() else spelling
    elif bare != spelling:
        yield spelling
    if "'" in bare or "\u2019" in bare:
        yield bare.replace("'", "").replace("\u2019", "")


def _plurals(spellings: Iterable[str]) -> dict[str, str]:
    """Map plurals of common nouns to their singular, unless the plural is a spelling itself."""
    existing = frozenset(spellings)
    singulars = {
        plural_of(spelling): spelling
        for spelling in existing
        if spelling.islower() and spelling[-1].isalpha()
    }
    return {plural: spelling for plural, spelling in sorted(singulars.items()) if plural not in existing}


def _words(text: str) -> _Words:
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(small if len(small := character.lower()) == 1 else character for character in text)
    spans = [word.span() for word in _WORD.finditer(lower)]
    begins, at = [], 1
    for start, end in spans:
        begins.append(at)
        at += end - start + 1
    return _Words(f" {' '.join(lower[start:end] for start, end in spans)} ", begins, spans)


def _connected(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the words are separated only by characters that may occur inside a name."""
    return all(
        text[end:start] == " "
        or _GAP.fullmatch(text, end, start)
        or (end - begin <= _SHORT and _STOPPED.fullmatch(text, end, start))
        for (begin, end), (start, _) in pairwise(spans)
    )


def _fitting(spellings: Iterable[Spelling], text: str, start: int, end: int) -> Spelling | None:
    """Return the spelling that matches the text, with preference for an exact match."""
    best, written = None, text[start:end]
    for spelling in spellings:
        occurrence = written
        if _TELLING.search(spelling.text):
            # The first word of a spelling may stand behind other characters.
            word = _WORD.search(spelling.text)
            first = max(0, start - (word.start() if word else 0))
            occurrence = text[first : first + len(spelling.text)]
        if occurrence == spelling.text:
            return spelling
        if occurrence is not written and occurrence.lower().translate(
            _SPELT
        ) != spelling.text.lower().translate(_SPELT):
            continue
        shouted = written.isupper() and len(written) > 3 and not spelling.text.isupper()
        best = spelling if best is None and (spelling.any_case or shouted) else best
    return best


def _with_marks(spelling: str, text: str, end: int) -> int:
    """Return the end of a name including its final marks, as in C++."""
    closing = spelling[len(spelling.rstrip("+#!")) :]
    return end + len(closing) if closing and text.startswith(closing, end) else end


def _verb(text: str, spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a word is a verb: after a pronoun, or a common word after `to` or an auxiliary verb."""
    if at == 0 or not text[spans[at - 1][1] : spans[at][0]].isspace():
        return False
    before, word = (text[start:end].lower() for start, end in spans[at - 1 : at + 1])
    return before in PRONOUNS or (before in BEFORE_VERBS and word in common_words())

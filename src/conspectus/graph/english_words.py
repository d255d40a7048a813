"""Lists of English words, and plurals."""

from functools import cache
from importlib.resources import files
from typing import Final


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
    if key.endswith(("ches", "shes", "xes", "sses", "zes", "oes")):
        return key[:-2]
    return key[:-1]

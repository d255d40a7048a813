"""Words that say what names are: titles, the heads of names of organisations and places, common words."""

from functools import cache
from importlib.resources import files
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES: Final = _words(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess pope saint emperor "
    "empress president senator governor captain colonel general lieutenant sergeant major admiral "
    "commander chancellor minister judge justice bishop archbishop cardinal rabbi sheikh sultan tsar duke "
    "duchess count countess baron earl uncle aunt gen col lt sgt capt rev hon sen rep gov pres coach "
    "prime vice deputy chairman chairwoman director mayor spokesman spokeswoman secretary representative "
    "detective officer chief marshal manager doge pharaoh midshipman ambassador premier sheriff inspector "
    "elector"
)
"""What stands before the name of a person; alone it is none."""
ORGANISATIONS: Final = _words(
    "inc ltd llc corp co plc gmbh ag company companies corporation group holdings university college "
    "school institute academy committee commission council agency ministry department bureau office bank "
    "association society federation union league party club foundation trust museum library hospital "
    "church orchestra band records pictures studios entertainment press army navy corps force forces "
    "police court parliament congress senate assembly board authority network airlines airways team fc "
    "united motors systems software technologies laboratories labs center centre alliance organization "
    "organisation service services administration government program campaign order brigade regiment "
    "division railway times news"
)
"""What the name of an organisation ends with, or begins with before `of` and `for`."""
PLACES: Final = _words(
    "river lake mountain mountains mount island islands county city town village state province district "
    "region street road avenue square park bay sea ocean gulf strait valley peninsula bridge airport "
    "station desert forest beach canal cape castle coast creek hill hills falls harbor harbour port plaza "
    "republic kingdom territory township borough municipality parish stadium temple palace tower highway "
    "house hall"
)
"""What the name of a place ends with, or begins with before `of`."""
NOBLE: Final = _words("prince princess duke duchess count countess baron earl lord lady")
"""Titles that are part of the name where `of` follows."""
DIRECTIONS: Final = _words(
    "new old north south east west northern southern eastern western great central upper lower inner outer "
    "saint st san santa los las le la el super inter mid trans"
)
"""What tells a name that begins with it from the one without."""
EVENTS: Final = _words(
    "olympics olympic championships championship cup games series season tour open masters bowl summit "
    "election elections census festival war revolution grand world summer winter winter_olympics prix act "
    "convention treaty conference expo tournament marathon classic award awards"
)
"""What a year stands before as part of a name."""
FUNCTION_WORDS: Final = _words(
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
"""What begins a sentence before a name without being part of it."""
PRONOUNS: Final = _words("i you we they he she it")
BEFORE_VERBS: Final = _words(
    "that who to would will can could should might must do does did don't didn't really just also always "
    "never ll d ve t not"
)
"""After these, a word that can be a verb is one."""


@cache
def listed_words() -> tuple[str, ...]:
    """Words that are written without a capital more often than with one, the most common first."""
    return tuple(files("conspectus.graph").joinpath("lower_words.txt").read_text("utf-8").split())


@cache
def common_words() -> frozenset[str]:
    """The same with all function words, for looking up."""
    return frozenset(listed_words()) | FUNCTION_WORDS


def most_common_words(count: int) -> frozenset[str]:
    """So many of the most common words."""
    return frozenset(listed_words()[:count])

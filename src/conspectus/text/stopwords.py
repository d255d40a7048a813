"""Function words that say nothing about what a text is about, by Snowball language."""

from collections.abc import Mapping
from types import MappingProxyType

_ENGLISH = """
a an the this that these those some any no such
i me my we us our ours you your yours he him his she her hers it its they them their theirs
itself themselves who whom whose which what when where why how
and or but nor so if then than too also very not there here as
of in on at by for from to into onto with about
am is are was were be been being do does did doing has have had having
can could should would will shall may might must
cannot cant dont doesnt didnt isnt arent wasnt werent wont
"""

STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType({"english": frozenset(_ENGLISH.split())})

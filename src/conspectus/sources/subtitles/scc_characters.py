"""The characters of CEA-608 that are not those of ASCII, by their codes."""

from collections.abc import Mapping
from typing import Final

PLAIN: Final[Mapping[int, str]] = {
    0x27: "\u2019", 0x2A: "á", 0x5C: "é", 0x5E: "í", 0x5F: "ó", 0x60: "ú", 0x7B: "ç", 0x7C: "÷", 0x7D: "Ñ",
    0x7E: "ñ", 0x7F: "█",
}  # fmt: skip
SPECIAL: Final = "®°½¿™¢£♪à èâêîôû"
"""Codes 0x30 to 0x3F behind 0x11."""
EXTENDED: Final = (
    "ÁÉÓÚÜü\u2018¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»"
    "ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤¦ÅåØø┌┐└┘"
)  # fmt: skip
"""Codes 0x20 to 0x3F behind 0x12, then those behind 0x13; each replaces the character before it."""

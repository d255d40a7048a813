"""Parts of web pages that lead elsewhere or ask for consent, by their tag, role, id and classes."""

import re
from collections.abc import Mapping

from conspectus.sources.files.extract import left_out_notice

NAVIGATION_TAGS = frozenset({"menu", "nav", "noscript"})
NAVIGATION_ROLES = frozenset({"navigation", "menubar", "search"})
UNSEEN = frozenset({"script", "style", "template"})
FRAMES = frozenset({"footer", "header"})
"""Parts of a page that are navigation where most of their text is links, unless they stand in its content."""
CONTENT = frozenset({"article", "main", "section", "blockquote"})
MAX_LINK_SHARE = 0.5
_BANNER = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr)[_-]?"
    r"(?:banner|bar|box|dialog|law|message|modal|notice|overlay|policy|popup|prompt|wall|warning)"
    r"|cookieconsent|cookiebot|cybotcookie|onetrust-|(?:^|[\s_-])cc-(?:window|banner)|didomi-|usercentrics|truste_",
    re.IGNORECASE,
)
_SKIP_LINK = re.compile(r"(?:^|[\s_-])(?:skip|jump)[_-]?(?:content|link|main|nav|to)", re.IGNORECASE)
"""Classes of links into the page, "Skip to content", which few readers see."""
_PAGE = frozenset({"html", "body", "main", "article"})


def is_navigation(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is navigation or a banner that asks for consent."""
    if tag in NAVIGATION_TAGS or attributes.get("role", "").lower() in NAVIGATION_ROLES:
        return True
    names = f"{attributes.get('id', '')} {attributes.get('class', '')}"
    if tag == "a" and attributes.get("href", "").startswith("#"):
        return _SKIP_LINK.search(names) is not None
    return tag not in _PAGE and _BANNER.search(names) is not None


def navigation_notice(words: int, left_out: int) -> str | None:
    """Return a notice of the words in navigation and banners, if they are a share that counts."""
    return left_out_notice(words, left_out, "navigation and cookie banners")

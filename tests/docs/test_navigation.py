"""The navigation that is made once is the one that furo makes for each page."""

import pytest
from furo.navigation import get_navigation_tree
from scripts.docs.navigation import Navigation

TREE = """\
<ul{outer}>
<li class="toctree-l1{guides}"><a class="{guides_link}" href="{guides_href}">Guides &amp; more</a><ul{inner}>
<li class="toctree-l2{chat}"><a class="{chat_link}" href="{chat_href}">Chat</a></li>
<li class="toctree-l2"><a class="reference external" href="https://example.com/guides/chat.html">Out</a></li>
</ul>
</li>
<li class="toctree-l1"><a class="reference internal" href="{last_href}">Last</a></li>
</ul>
"""
LINK = "reference internal"
UNMARKED = {
    **dict.fromkeys(("outer", "inner", "guides", "chat"), ""),
    **dict.fromkeys(("guides_link", "chat_link"), LINK),
}
CURRENT = ' class="current"'
FIRST = {
    "guides_href": "guides/index.html",
    "chat_href": "guides/chat.html",
    "last_href": "last.html",
}
INSIDE = {"guides_href": "index.html", "chat_href": "chat.html", "last_href": "../last.html"}
GUIDES = {
    "outer": CURRENT,
    "guides": " current",
    "guides_link": f"current {LINK}",
    "guides_href": "#",
}
CHAT = {
    "outer": CURRENT,
    "inner": CURRENT,
    "guides": " current",
    "chat": " current",
    "chat_link": f"current {LINK}",
    "chat_href": "#",
}


def navigation_of(**marks: str) -> str:
    """What furo makes of the tree that Sphinx gives it for a page."""
    return get_navigation_tree(TREE.format(**{**UNMARKED, **marks}))


@pytest.mark.parametrize(
    ("page", "marks"),
    [
        ("index.html", FIRST),
        ("guides/index.html", {**INSIDE, **GUIDES}),
        ("guides/chat.html", {**INSIDE, **CHAT}),
        ("guides/unlisted.html", INSIDE),
    ],
)
def test_each_page_has_the_navigation_that_furo_makes_for_it(page: str, marks: dict[str, str]) -> None:
    assert Navigation(navigation_of(**FIRST)).render(page) == navigation_of(**marks)


def test_a_site_of_one_page_has_none() -> None:
    assert Navigation("").render("index.html") == ""

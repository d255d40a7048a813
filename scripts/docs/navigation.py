"""The navigation of the site. Furo makes it anew for each page, which is a third of the work of a build.

Here it is made once. Each page gets a copy in which its own entry is marked and links are relative to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment.adapters.toctree import global_toctree_for_doc
from sphinx.util.osutil import relative_uri

TAG: Final = re.compile(
    r'<ul>|</li>|<li class="(?P<classes>[^"]*)">|<a class="reference internal" href="(?P<page>[^"]*)">'
    r'|(?P<checkbox><input aria-label="[^"]*")'
)
ROOT: Final = -1
"""The number of the entry around the outermost list."""


@dataclass(frozen=True)
class Tag:
    """A tag that depends on the page, with the number of its entry and the text up to the next such tag."""

    match: re.Match[str]
    entry: int
    following: str


class Navigation:
    """The navigation of a page in the root folder that has no entry itself."""

    def __init__(self, html: str) -> None:
        self._parents: list[int] = []
        self._entries: dict[str, list[int]] = {}
        matches = list(TAG.finditer(html))
        starts = [*(match.start() for match in matches), len(html)]
        self._before = html[: starts[0]]
        self._tags: list[Tag] = []
        entry = ROOT
        for match, end in zip(matches, starts[1:], strict=True):
            if match["classes"] is not None:
                self._parents.append(entry)
                entry = len(self._parents) - 1
            if match["page"] is not None:
                self._entries.setdefault(match["page"], []).append(entry)
            self._tags.append(Tag(match, entry, html[match.end() : end]))
            if match[0] == "</li>":
                entry = self._parents[entry]

    def render(self, page: str) -> str:
        """Return the navigation for a page, which is given by its address."""
        page_entries = set(self._entries.get(page, ()))
        current = set(page_entries)
        for entry in page_entries:
            current.update(self._walk_parents(entry))
        parts = [self._before]
        for tag in self._tags:
            parts += [self._render_tag(tag, page, page_entries=page_entries, current=current), tag.following]
        return "".join(parts)

    def _walk_parents(self, entry: int) -> Iterator[int]:
        while (entry := self._parents[entry]) != ROOT:
            yield entry

    def _render_tag(self, tag: Tag, page: str, *, page_entries: set[int], current: set[int]) -> str:
        match = tag.match
        if match["page"] is not None:
            if tag.entry in page_entries:
                return '<a class="current reference internal" href="#">'
            return f'<a class="reference internal" href="{relative_uri(page, match["page"])}">'
        if match["classes"] is not None and tag.entry in current:
            level, *others = match["classes"].split()
            last = ["current-page"] if tag.entry == max(current) else []
            return f'<li class="{" ".join([level, "current", *others, *last])}">'
        if match["checkbox"] is not None and tag.entry in current:
            return f'{match["checkbox"]} checked=""'
        if match[0] == "<ul>" and tag.entry in {self._parents[entry] for entry in current}:
            return '<ul class="current">'
        return match[0]


def connect(app: Sphinx) -> None:
    """Replace the navigation that furo makes for each page."""
    navigations: list[Navigation] = []

    def hide_toctree(app: Sphinx, _page: str, _template: str, context: dict[str, Any], *_: object) -> None:
        context["toctree"] = lambda **_: ""

    def add_navigation(app: Sphinx, page: str, _template: str, context: dict[str, Any], *_: object) -> None:
        if not navigations:
            navigations.append(Navigation(render_navigation(app)))
        context["furo_navigation_tree"] = navigations[0].render(app.builder.get_target_uri(page))

    app.connect("html-page-context", hide_toctree, priority=400)
    app.connect("html-page-context", add_navigation, priority=600)


def render_navigation(app: Sphinx) -> str:
    """Return the navigation of the first page, which has no entry in it."""
    toctree = global_toctree_for_doc(
        app.env,
        app.config.root_doc,
        app.builder,
        tags=app.tags,
        collapse=False,
        titles_only=True,
        maxdepth=-1,
        includehidden=True,
    )
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    navigation: str = get_navigation_tree(app.builder.render_partial(toctree)["fragment"])
    return navigation

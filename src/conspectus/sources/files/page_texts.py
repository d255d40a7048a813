"""The texts that a web page shows, taken from its tree without its structure."""

from lxml import etree, html

from conspectus.sources.files.missing_words import ShownText

NOT_SHOWN = frozenset({"head", "script", "style", "template", "noscript", "rt", "rp"})
_WITHIN_WORDS = "a abbr b em i mark q s small span strong sub sup u"
WITHIN_WORDS = frozenset(_WITHIN_WORDS.split())


def page_text(data: bytes, kind: str = "", *, encoding: str | None = None) -> ShownText:
    """Return all text of a page but that of its head, scripts and styles.

    Without an encoding, it is that which the page declares.
    """
    parser = html.HTMLParser(encoding=encoding, no_network=True, huge_tree=True)
    try:
        page = html.document_fromstring(data, parser)
    except etree.ParserError:
        # The page is empty.
        return ShownText(kind, "")
    parts: list[str] = []
    walker = etree.iterwalk(page, events=("start", "end"))
    for event, node in walker:
        is_within_word = node.tag in WITHIN_WORDS
        if event == "start" and node.tag not in NOT_SHOWN and isinstance(node.tag, str):
            parts += ["" if is_within_word else "\n", node.text or "", node.get("alt", "")]
        elif event == "start":
            walker.skip_subtree()
        else:
            parts += ["" if is_within_word else "\n", node.tail or ""]
    return ShownText(kind, "".join(parts))

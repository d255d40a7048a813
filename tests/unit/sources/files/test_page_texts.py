"""Texts of web pages without their structure."""

from conspectus.sources.files.page_texts import page_text


def test_all_text_but_scripts_is_shown() -> None:
    page = b"""<html><head><title>t</title></head><body><nav>Menu</nav><p>H<b>arb</b>or</p>
    <script>x()</script><img alt="a crane"><!-- no --><table><tr><td>a<td>b</table></body></html>"""
    assert page_text(page).text.split() == ["Menu", "Harbor", "a", "crane", "a", "b"]


def test_an_empty_page_shows_nothing() -> None:
    assert page_text(b"").text == page_text(b"<!-- -->").text.strip() == ""


def test_the_encoding_is_that_which_is_known() -> None:
    assert page_text("<p>für</p>".encode(), encoding="utf-8").text.strip() == "für"

"""Wikitext to Markdown."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.sources.connectors.wikitext import wikitext_to_markdown

PAGE = """\
{{Infobox bird
| name = Heron
| range = {{map|[[Europe]]|{{nested|{{deeper}}}}}}
}}
[[File:Heron.jpg|thumb|A heron in [[the reeds]] at ''dawn'']]
The '''grey heron''' (''Ardea cinerea''{{lang|la|x}}) is a [[wading bird|wader]] of the [[heron]] family.<ref
name="x">{{cite|title=Birds}}</ref> It weighs 1&ndash;2&nbsp;kg.<ref name="x" /><!-- check
this -->

== Food ==
* fish
* small mammals
** voles
# first
## second
; Hunts : at dawn
: alone
=== Method===
It waits, see [https://example.org/herons the long study] and [https://example.org/more].<br/>Then it strikes.

{| class="wikitable" style="x"
|+ Sizes
|-
! Part !! scope="col" | Length
|-
| Wing || align="right" | 45 cm
|-
| Bill
| 12 cm
and more
|}
__NOTOC__
[[Category:Birds]] [[:Category:Birds|all birds]]
"""


def test_a_whole_page() -> None:
    assert wikitext_to_markdown(PAGE) == dedent("""\
        The grey heron (Ardea cinerea) is a wader of the heron family. It weighs 1\u20132 kg.

        ## Food

        - fish
        - small mammals
           - voles
        1. first
           1. second
        Hunts : at dawn
        alone

        ### Method

        It waits, see the long study and https://example.org/more.
        Then it strikes.

        Sizes
        | Part | Length |
        | --- | --- |
        | Wing | 45 cm |
        | Bill | 12 cm and more |

        all birds""")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", ""),
        ("   \n\n ", ""),
        ("<nowiki>[[not a link]] {{nor this}} &amp; <b></nowiki>", "[[not a link]] {{nor this}} & <b>"),
        ("<pre>\n== not a heading ==\n</pre>", "```\n== not a heading ==\n```"),
        (
            '<syntaxhighlight lang="python">\nx = {{}}[[1]]\n</syntaxhighlight>',
            "```python\nx = {{}}[[1]]\n```",
        ),
        ("<source lang=bash inline>ls</source>", "`ls`"),
        ("<syntaxhighlight>a ``` b</syntaxhighlight>", "````\na ``` b\n````"),
        ("<math>x^2</math> is square", "$x^2$ is square"),
        ("the <code>name</code> of it", "the `name` of it"),
        ("a<includeonly>hidden</includeonly>b<noinclude>c</noinclude>", "abc"),
        ("<gallery>\nFile:A.jpg|words\n</gallery>after", "after"),
        ("{{unclosed\ntext [[also", "unclosed\ntext also"),
        ("closed}} only]]", "closed only"),
        ("{{{parameter|default}}} and {{{{{1}}}}}x", "and x"),
        ("a < b and List<int> stay", "a < b and List<int> stay"),
        ("[[Page#Part]] [[Page|]] [[ |x]]", "Page#Part Page x"),
        ("[[Datei:Bild.png|mini]]x[[Kategorie:Vögel]]", "x"),
        ("=Top=\n= not ==\n====\n==  ==", "# Top\n\n# not ="),
        ("======= seven =======", "###### = seven ="),
        ("'''''both''''' it's", "both it's"),
        ("{|\n! A\n! B\n|-\n| 1 || 2", "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ("{|\n|\n{|\n| inner\n|}\n| outer\n|}\nafter", "|  | inner | outer |\n\nafter"),
        ("----\ntext", "text"),
        ("\x020\x03 marks &#2;0&#3; are nobody's", "0 marks 0 are nobody's"),
        ("<ref>never closed [[link]] {{gone}}", "never closed link"),
        ("<!-- never closed", ""),
        ("日本語の[[鷺]]、 🦩 عربى", "日本語の鷺、 🦩 عربى"),
    ],
)
def test_single_constructs(source: str, expected: str) -> None:
    files, categories = {"file", "datei"}, {"category", "kategorie"}
    assert wikitext_to_markdown(source, files=files, categories=categories) == expected


HOSTILE = (
    "{{", "}}", "[[", "]]", "[[a|", "{|\n", "|}\n", "<ref>", "<pre>", "<!--", "<nowiki", "<div ", "'''", "=",
    "[http://x ", "*", "&lt;", "__A", "(", "| a || b\n", "{{[[", "\x02", "==\n", "!!", "word\n",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_long_hostile_pages_end(piece: str) -> None:
    page = piece * (400_000 // len(piece))
    assert len(wikitext_to_markdown(f"{page}\nlast words")) <= 6 * len(page)
    assert len(wikitext_to_markdown(f"{{|\n| cell\n{page}")) <= 6 * len(page)


@given(st.lists(st.sampled_from([*HOSTILE, "-->", "</ref>", "</pre>", "\n", " ", "a", "|", "é", "]", "#"])))
def test_anything_can_be_read(pieces: list[str]) -> None:
    text = wikitext_to_markdown("".join(pieces))
    assert text == text.strip()
    assert "\x02" not in text and "\n\n\n" not in text


@given(
    st.text(alphabet=st.characters(exclude_characters="{}[]<>'=*#:;|!&_-\x02\x03(", categories=["L", "N"]))
)
def test_plain_words_stay_as_they_are(words: str) -> None:
    assert wikitext_to_markdown(words) == words.strip()

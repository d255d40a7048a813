"""SAMI: a text of each language until its next."""

from conspectus.sources.subtitles.caption_import import read_caption_file

SAMI = """<SAMI><HEAD><TITLE>A &amp; B</TITLE><STYLE TYPE="text/css"><!--
.ENCC {Name: English; lang: en-US;} .FRCC { lang: fr-FR }
--></STYLE></HEAD><BODY>
<SYNC Start=1000><P Class=ENCC>One<br>more &lt;3<P Class=FRCC>Un
<SYNC Start=2500><P Class=ENCC>&nbsp;
<!-- <SYNC Start=2700><P Class=ENCC>not this -->
<SYNC Start='3000ms'><p class="ENCC"><i>Two</i></p><p class="FRCC">Deux</p>
</BODY></SAMI>
"""


def test_sami_shows_each_language_until_its_next_text() -> None:
    track = read_caption_file(SAMI, "a.smi")
    assert [
        (caption.text, caption.start, caption.end, caption.metadata["language"]) for caption in track.captions
    ] == [
        ("One\nmore <3", 1.0, 2.5, "en-US"),
        ("Un", 1.0, 3.0, "fr-FR"),
        ("Two", 3.0, None, "en-US"),
        ("Deux", 3.0, None, "fr-FR"),
    ]
    assert (track.title, track.language, track.notice) == ("A & B", None, None)

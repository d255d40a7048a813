"""TTML, DFXP and YouTube's XML: times in every unit, nested parts, and hostile XML."""

import pytest

from conspectus.errors import UnreadableFile
from conspectus.model.captions import NewCaption
from conspectus.sources.files.parsers import is_caption_file
from conspectus.sources.subtitles.caption_import import read_caption_file

LAUGHS = """<!DOCTYPE tt [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><tt><body><p begin="0s">&c;</p></body></tt>"""


def write_ttml(body: str, attributes: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-16"?><tt xmlns="http://www.w3.org/ns/ttml" '
        'xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xmlns:ttm="http://www.w3.org/ns/ttml#metadata" '
        f'xml:lang="en" {attributes}><head><ttm:title>T</ttm:title><ttm:agent xml:id="x"><ttm:name>Ann'
        f"</ttm:name></ttm:agent></head><body>{body}</body></tt>"
    )


def read_captions(body: str, attributes: str = "") -> tuple[NewCaption, ...]:
    return read_caption_file(write_ttml(body, attributes), "a.ttml").captions


@pytest.mark.parametrize(
    ("attributes", "time", "seconds"),
    [
        ("", "00:00:01.5", 1.5),
        ("", "100:00:01", 360001.0),
        ("", "1.25h", 4500.0),
        ("", "2m", 120.0),
        ("", "1500ms", 1.5),
        ("", "12.345s", 12.345),
        ("", "7", 7.0),
        ('ttp:frameRate="25"', "00:00:01:05", 1.2),
        ('ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"', "30f", 1.001),
        ('ttp:frameRate="24" ttp:frameRateMultiplier="999 1000"', "00:00:00:12", 0.501),
        ('ttp:tickRate="10000000"', "15000000t", 1.5),
        ('ttp:frameRate="25"', "50t", 2.0),
        ('ttp:frameRate="zero"', "15f", 0.5),
    ],
)
def test_times_in_every_unit(attributes: str, time: str, seconds: float) -> None:
    (caption,) = read_captions(f'<p begin="{time}">x</p>', attributes)
    assert (caption.start, caption.end) == (seconds, None)


def test_lines_white_space_and_speakers() -> None:
    body = """<div><p begin="1s" end="2s" ttm:agent="x">
        One <span>two</span><!-- three --><br/>
        <metadata>four</metadata><span>five<br/>six</span> </p>
      <p begin="2s" dur="1.5s" end="9s" xml:space="preserve">a  b</p><p begin="5s"> <br/> </p></div>"""
    first, second = read_captions(body)
    assert (first.text, first.start, first.end, first.speaker) == ("One two\nfive\nsix", 1.0, 2.0, "Ann")
    assert (second.text, second.start, second.end, second.speaker) == ("a  b", 2.0, 3.5, None)


def test_times_count_from_where_the_parent_begins_and_end_with_it() -> None:
    body = '<div begin="10s" end="20s"><p begin="1s">a</p><p begin="2s" end="30s">b</p><p>c</p></div><p>d</p>'
    assert [(caption.text, caption.start, caption.end) for caption in read_captions(body)] == [
        ("a", 11.0, 20.0),
        ("b", 12.0, 20.0),
        ("c", 10.0, 20.0),
        ("d", None, None),
    ]


def test_timed_parts_of_an_untimed_paragraph_are_captions() -> None:
    body = '<p><span begin="1s" end="2s">a</span> <span begin="2s" end="3s">b</span></p>'
    assert [(caption.text, caption.start, caption.end) for caption in read_captions(body)] == [
        ("a", 1.0, 2.0),
        ("b", 2.0, 3.0),
    ]


def test_languages_title_and_times_that_cannot_be_read() -> None:
    body = '<div xml:lang="fr"><p begin="1s">un</p></div><p begin="soon" end="2s">one</p>'
    track = read_caption_file(write_ttml(body), "a.xml")
    assert (track.title, track.language) == ("T", "en")
    assert [(caption.text, caption.start, dict(caption.metadata)) for caption in track.captions] == [
        ("un", 1.0, {"language": "fr"}),
        ("one", None, {}),
    ]
    assert track.notice == "captions with invalid times, kept without times: 1"


@pytest.mark.parametrize(
    "text",
    [
        '<transcript><text start="1.5" dur="2">it&amp;#39;s</text>'
        '<text start="3.5" dur="1">b</text></transcript>',
        '<timedtext format="3"><head/><body><p t="1500" d="2000"><s>it</s><s t="9">\'s</s></p>'
        '<p t="3500" d="1000">b</p></body></timedtext>',
    ],
)
def test_the_forms_of_youtube(text: str) -> None:
    track = read_caption_file(text, "a.xml")
    assert [(caption.text, caption.start, caption.end) for caption in track.captions] == [
        ("it's", 1.5, 3.5),
        ("b", 3.5, 4.5),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, "declares entities"),
        ("<tt>" + "<div>" * 100_000, "valid"),
        ("<tt><p begin='0s'>cut", "valid"),
        ("<transcript><speech>x</speech></transcript>", "no caption was found"),
        ("<feed><entry>no captions</entry></feed>", "not the root|unknown format"),
        ("<tt/>", "no caption was found"),
    ],
)
def test_xml_that_cannot_be_read_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        read_caption_file(text, "a.xml")


def test_what_a_document_names_elsewhere_is_not_fetched() -> None:
    text = (
        '<!DOCTYPE tt SYSTEM "http://localhost:1/x.dtd"><tt><body><p begin="0s">a &amp; &x;</p></body></tt>'
    )
    assert [caption.text for caption in read_caption_file(text, "a.xml").captions] == ["a & &x;"]


def test_nested_parts_as_deep_as_xml_goes() -> None:
    body = '<p begin="1s">' + "<span>" * 200 + "deep" + "</span>" * 200 + "</p>"
    assert [caption.text for caption in read_captions(body)] == ["deep"]


def test_other_xml_is_still_a_page() -> None:
    for text in (
        "<feed><tt>no</tt></feed>",
        "<a><transcript><text start='1'>x</text></transcript></a>",
        "<transcript><speech>x</speech></transcript>",
        "<!-- <tt> --><other/>",
    ):
        assert not is_caption_file(text, "a.xml")
    assert is_caption_file(write_ttml('<p begin="1s" end="2s">x</p>'), "a.xml")

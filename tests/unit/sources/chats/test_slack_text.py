"""What a Slack message says, as people read it."""

import pytest

from conspectus.sources.chats.export_messages import ExportUsers
from conspectus.sources.chats.slack_text import SlackText


def build_reader() -> SlackText:
    people = ExportUsers()
    people.learn("U1", "Annie")
    return SlackText(people, {"C1": "general"})


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("hi <@U1>, <@U9> and <@U8|carl>", "hi @Annie, @U9 and @carl"),
        ("see <#C1|general>, <#C1>, <#C7>", "see #general, #general, #C7"),
        ("<!here> <!channel|@channel> <!subteam^S1|@ops> <!subteam^S2>", "@here @channel @ops @S2"),
        ("<!date^1392734382^Posted {date_num}|Feb 18>", "Feb 18"),
        ("<https://a.example/x|the x>", "the x (https://a.example/x)"),
        ("<http://a.example|a.example> <https://b.example>", "http://a.example https://b.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt; &quot;", "1 < 2 && 3 > 2 &lt; &quot;"),
        ("a < b > c <> <|x> <@> <b>", "a < b > c <> <|x> <@> <b>"),
        ("```if (a &lt; b) { <@U1> }```", "```if (a < b) { @Annie }```"),
        ("<<@U1>", "<@Annie"),
        ("no markup", "no markup"),
    ],
)
def test_markup_becomes_text(markup: str, text: str) -> None:
    assert build_reader().strip_markup(markup) == text


def rich_text(*elements: object) -> list[object]:
    return [{"type": "rich_text", "elements": list(elements)}]


def text_section(*elements: object) -> dict[str, object]:
    return {"type": "rich_text_section", "elements": list(elements)}


def text_element(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def test_rich_text_speaks_where_the_text_is_empty() -> None:
    blocks = rich_text(
        text_section(
            text_element("Hi "),
            {"type": "user", "user_id": "U1"},
            text_element(" in "),
            {"type": "channel", "channel_id": "C1"},
            text_element(": "),
            {"type": "emoji", "name": "tada"},
            {"type": "broadcast", "range": "here"},
            {"type": "link", "url": "https://a.example", "text": "page"},
        ),
        {
            "type": "rich_text_list",
            "elements": [text_section(text_element("one")), text_section(text_element("two"))],
        },
        {"type": "rich_text_preformatted", "elements": [text_element("a < b")]},
    )
    expected = "Hi @Annie in #general: :tada:@herepage (https://a.example)\n- one\n- two\na < b"
    assert build_reader().full_text({"text": "", "blocks": blocks}) == expected
    assert build_reader().full_text({"text": "said", "blocks": blocks}) == "said"


def test_layout_blocks_speak_as_well() -> None:
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Build"}},
        {"type": "divider"},
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": "*42* &amp; <@U1>"},
            "fields": [text_element("f")],
        },
        {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": "by"}, {"type": "image", "alt_text": "x"}],
        },
        {"type": "actions", "elements": [{"type": "button", "text": {"text": "no"}}]},
        {"type": "section", "text": 5, "fields": "x"},
        "stray",
    ]
    assert build_reader().full_text({"blocks": blocks}) == "Build\n*42* & @Annie\nf\nby x"


def test_blocks_nested_without_end_are_cut_short() -> None:
    inner: dict[str, object] = text_element("deep")
    for _ in range(500):
        inner = text_section(inner)
    assert build_reader().full_text({"blocks": rich_text(inner)}) == ""


def test_attachments_say_title_text_and_fields_or_what_stands_for_them() -> None:
    text = build_reader().full_text(
        {
            "text": "look",
            "attachments": [
                {"pretext": "p", "title": "T &amp; t", "text": "<@U1> did", "fallback": "unused"},
                {"fields": [{"title": "State", "value": "ok"}, {"value": "v"}, 3]},
                {"fallback": "just <https://a.example|this>"},
                {"text": "look"},
                {"blocks": rich_text(text_section(text_element("in blocks")))},
                {"text": 5},
                None,
            ],
        }
    )
    assert text == "look\np\nT & t\n@Annie did\nState: ok\nv\njust this (https://a.example)\nin blocks"


def test_files_say_their_names_and_previews() -> None:
    files = [
        {"name": "a.txt", "title": "Plan", "preview": "line 1\nline 2"},
        {"name": "b.png", "title": "b.png"},
        {"title": "only a title", "plain_text": "post"},
        {"id": "F1", "mode": "hidden_by_limit", "name": "gone"},
        {},
        9,
    ]
    assert build_reader().full_text({"text": "", "files": files, "file": {"name": "old.js"}}) == (
        "File: Plan (a.txt)\nline 1\nline 2\nFile: b.png\nFile: only a title\npost\nFile: old.js"
    )

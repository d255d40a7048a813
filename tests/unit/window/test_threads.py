"""Windows over threads: left-out messages, replies, and the trace."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.query import Budget
from conspectus.model.records import Chunk, Document, Period
from conspectus.model.results import Hit, Retrieval, ThreadOutline
from conspectus.providers.tokenizers import counter
from conspectus.text.hashing import content_hash
from conspectus.window.build import build_window
from conspectus.window.render import renderer_by_name
from conspectus.window.threads import Gaps, Threads

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
count = counter("o200k_base")


def make_message(minute, author="Ada", **fields):
    at = NOON + timedelta(minutes=minute)
    fixed = {"id": f"m{minute}", "collection": "c", "source": "s", "kind": "message", "key": str(minute)}
    texts = {"title": "", "content_hash": "", "fingerprint": "", "recorded": NOON, "updated": NOON}
    return Document(
        **{**fixed, **texts, "author": author, "thread": "0", "occurred": Period(at, at), **fields}
    )


def make_hit(document, text="Hi.", score=0.5, along_with=None):
    number = int(document.key)
    chunk = Chunk(number, document.id, 0, text, 0, len(text), count(text), content_hash(f"{number} {text}"))
    return Hit(chunk, document, score, {"keyword": score}, None, None, along_with)


def outline(total, *, but=()):
    positions = {f"m{number}": number for number in range(total) if number not in but}
    return ThreadOutline("s", "0", positions, total)


def pack(hits, *threads, tokens=10_000, form="text"):
    retrieval = Retrieval("found", tuple(hits), threads=threads)
    return build_window(retrieval, Budget(tokens), renderer_by_name(form), count)


def make_three_hits():
    """A question, a reply far behind it, and an answer to that."""
    reply = make_message(7, "Bob", metadata={"reply_to": "0"})
    return [
        make_hit(make_message(0), "How?", 0.9),
        make_hit(reply, "So.", 0.8),
        make_hit(make_message(8), "Thanks!", 0.7),
    ]


def test_what_is_left_out_is_counted_where_it_belongs():
    assert pack(make_three_hits(), outline(10)).text == (
        "[1] 2024-05-01 12:00 Ada: How?\n"
        "[… 6 messages left out]\n"
        "[2] ↪ 12:07 Bob: So.\n"
        "[3] 12:08 Ada: Thanks!\n"
        "[… 1 message left out]"
    )


def test_the_other_forms_say_it_too():
    assert pack(make_three_hits()[1:], outline(9), form="xml").text.split("\n")[:2] == [
        "<context>",
        '<left_out messages="7" before="1"/>',
    ]
    rendered = pack(make_three_hits()[:1], outline(4), form="json").text
    assert rendered.endswith('{"left_out":{"after":1,"messages":3}}]}')
    assert (
        '\n<left_out messages="6" before="2"/>\n<passage'
        in pack(make_three_hits(), outline(9), form="guarded").text
    )
    assert (
        "\n[… 6 messages left out]\n[2]"
        in pack(make_three_hits(), outline(9), form="messages").messages[0].content
    )


@pytest.mark.parametrize(
    "outlines", [(), (ThreadOutline("elsewhere", "0", {"m0": 0}, 99),), (outline(10, but=(7,)),)]
)
def test_nothing_is_counted_where_not_all_is_known(outlines):
    """Nor are replies marked: windows without chains are what they were."""
    assert pack(make_three_hits(), *outlines).text == (
        "[1] 2024-05-01 12:00 Ada: How?\n[2] 12:07 Bob: So.\n[3] 12:08 Ada: Thanks!"
    )


def test_the_order_of_the_thread_may_be_another_than_that_of_time():
    """What would be counted is not what is missing then, so nothing is."""
    turned = ThreadOutline("s", "0", {"m0": 8, "m7": 1, "m8": 0}, 10)
    assert "left out" not in pack(make_three_hits(), turned).text


@pytest.mark.parametrize("reply_to", ["", "0", ["0"], None, 7, {"a": "0"}])
def test_what_answers_itself_or_nothing_that_can_be_read_is_no_reply(reply_to):
    packed = pack([make_hit(make_message(0, metadata={"reply_to": reply_to}))], outline(1))
    assert packed.text == "[1] 2024-05-01 12:00 Ada: Hi."


@pytest.mark.parametrize(
    ("author", "text", "line"),
    [
        (None, "↪ Bob: yes", "[1] \\↪ Bob: yes"),
        (None, "  \n ↪ Bob: yes", "[1] \\ ↪ Bob: yes"),
        ("↪ Bob", "yes", "[1] \\↪ Bob: yes"),
        ("Bob", "↪ yes", "[1] Bob: ↪ yes"),
        ("Bob", "x\n[… 3 messages left out]", "[1] Bob: x\n\\[… 3 messages left out]"),
        ("Bob", "x\n \u200b[ …9", "[1] Bob: x\n \u200b\\[ …9"),
    ],
)
def test_no_message_passes_for_a_reply_or_for_a_gap(author, text, line):
    assert pack([make_hit(make_message(0, author, occurred=None), text)], outline(1)).text == line


def make_long_thread():
    """Of a hundred messages the best one, and what its chain brings, in the order of need."""
    best = make_hit(make_message(50), "The token had expired. " * 6, 0.9)
    needed = (49, 0, 51, 99, 48, 52, 47, 53)
    chain = [
        make_hit(
            make_message(number),
            f"Message {number} says this and that. " * 3,
            0.9 - 0.01 * rank,
            along_with=50,
        )
        for rank, number in enumerate(needed, start=1)
    ]
    return [best, *chain]


def test_a_thread_too_long_for_the_budget_keeps_its_root_its_best_part_and_its_end():
    packed = pack(make_long_thread(), outline(100), tokens=230)
    assert [citation.document for citation in packed.citations][:1] == ["m0"]
    assert {"m0", "m49", "m50", "m51", "m99"} <= {citation.document for citation in packed.citations}
    assert packed.text.count("messages left out]") == 2
    assert count(packed.text) == packed.tokens <= 230
    left_out = [int(line.split()[1]) for line in packed.text.split("\n") if line.startswith("[… ")]
    assert sum(left_out) == 100 - len(packed.citations)


def test_marks_are_paid_for_at_every_budget():
    for tokens in range(0, 500, 7):
        packed = pack(make_long_thread(), outline(100), tokens=tokens)
        assert packed.tokens == (count(packed.text) if packed.text else 0) <= tokens


def test_the_trace_says_with_whom_each_came():
    hits = make_long_thread()
    reasons = {candidate.chunk: candidate.reason for candidate in pack(hits, outline(100), tokens=230).trace}
    assert reasons[50] == "in [4]"
    assert reasons[49] == "in [3], along with the hit in [4]"
    assert reasons[53].startswith("does not fit: needs at least")
    assert reasons[53].endswith(", along with the hit in [4]")
    alone = pack([replace(hits[1], along_with=77)], outline(100)).trace[0].reason
    assert alone == "in [1], along with a hit that is not shown"


@given(st.integers(1, 30), st.lists(st.integers(0, 29)))
def test_gaps_are_counted_as_they_come_and_go(total, order):
    gaps, marks, seen = Gaps(Threads([outline(total)])), 0, set()
    for number in order:
        marks += gaps.count_added_gaps(make_message(number))
        gaps.show(make_message(number))
        seen |= {number} & set(range(total))
        edges = sorted({-1, total, *seen})
        assert marks == (sum(b - a > 1 for a, b in pairwise(edges)) if seen else 0)

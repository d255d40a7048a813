"""Files inside files count together against the limits of one archive."""

from email.message import EmailMessage

import pytest
from tests.unit.sources.files.test_zip_archives import outcomes_of, write_zip

from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles


def nest(depth: int) -> bytes:
    data = write_zip({"a.md": b"A"})
    for _ in range(depth):
        data = write_zip({"in.zip": data})
    return data


def test_archives_are_read_to_a_depth() -> None:
    parsed = LocalFiles(Settings(max_archive_depth=2)).parse_bytes(nest(2), "a.zip")
    assert outcomes_of(parsed)["a.zip/in.zip/in.zip/a.md"].endswith("is inside more than 2 files")
    assert (
        outcomes_of(LocalFiles(Settings(max_archive_depth=3)).parse_bytes(nest(2), "a.zip"))[
            "a.zip/in.zip/in.zip/a.md"
        ]
        == "A"
    )


@pytest.mark.parametrize("settings", [Settings(max_archive_members=4), Settings(max_unpacked_bytes=1_300)])
def test_an_inner_archive_over_the_limits_of_all_is_refused_alone(settings: Settings) -> None:
    inner = write_zip({"a.md": b"a" * 500, "b.md": b"b" * 500})
    outer = write_zip({"one.zip": inner, "two.zip": inner, "c.md": b"C"})
    outcomes = outcomes_of(LocalFiles(settings).parse_bytes(outer, "x.zip"))
    assert {name: text.partition(":")[0] for name, text in outcomes.items()} == {
        "x.zip/one.zip": "TooLarge", "x.zip/two.zip": "TooLarge", "x.zip/c.md": "C",
    }  # fmt: skip


def test_attachments_have_the_time_of_their_message_and_lead_to_it() -> None:
    message = EmailMessage()
    message["From"], message["Subject"], message["Message-ID"] = "a@b.c", "Plan", "<1@x>"
    message["Date"] = "Mon, 3 Jun 2024 10:00:00 +0200"
    message.set_content("See the plan.")
    message.add_attachment("# Steps\n\nDig.", filename="plan.md")
    message.add_attachment(write_zip({"b.md": b"B"}), maintype="application", subtype="zip", filename="b.zip")
    parsed = LocalFiles().parse_bytes(bytes(message), "a.eml")
    assert parsed.documents[0].text == "See the plan.\n\nAttachments: plan.md, b.zip"
    assert [member.name for member in parsed.members] == ["a.eml/plan.md", "a.eml/b.zip", "a.eml/b.zip/b.md"]
    assert parsed.members[0].file is not None
    [plan] = parsed.members[0].file.documents
    assert (plan.title, plan.occurred) == ("Steps", "2024-06-03T10:00:00+02:00")
    assert plan.metadata == {
        "from": "a@b.c", "message_id": "<1@x>", "attached_to": "Plan", "path": "a.eml/plan.md",
        "media_type": "text/markdown",
    }  # fmt: skip

"""What messages of every format have in common: names, threads and people."""

from conspectus.sources.files.mail import Mail, attachment_names, mail_extract, message_name


def extract_of(**headers: str):
    return mail_extract(
        Mail("message/rfc822", {name.replace("_", "-"): text for name, text in headers.items()}, "x")
    )


def test_a_thread_is_named_by_its_first_message() -> None:
    assert extract_of(message_id="<3@x>", in_reply_to="<2@x>", references="<1@x> <2@x>").thread == "<1@x>"
    assert extract_of(message_id="<3@x>", in_reply_to="<2@x> (of Ann)").thread == "<2@x>"
    assert extract_of(message_id="<3@x>").thread == "<3@x>"
    assert extract_of(subject="Hi", references="none").thread is None


def test_people_are_the_addresses_of_all_and_bounded() -> None:
    everybody = ", ".join(f"P{number} <p{number}@x.org>" for number in range(1_000))
    metadata = extract_of(**{"from": "Ann <Ann@X.org>"}, to=everybody, cc="ann@x.org").metadata
    people = metadata["people"]
    assert isinstance(people, list) and people[:2] == ["ann@x.org", "p0@x.org"]
    assert len(str(metadata["to"])) == 2_000 and len(people) <= 200


def test_attachments_have_names_without_folders_and_each_once() -> None:
    names = ["a.pdf", "a.pdf", "", "../../etc/passwd", "C:\\temp\\b.doc", "..", "x\ny"]
    assert attachment_names(names) == [
        "a.pdf", "2 a.pdf", "attachment 3", "passwd", "b.doc", "attachment 6", "x y",
    ]  # fmt: skip


def test_a_message_of_a_mailbox_is_named_by_day_and_subject() -> None:
    name = message_name("Re: a/b\n" + "long " * 30, "2024-06-03T08:00:00+00:00", b"1")
    assert name.startswith("2024-06-03 Re: a b long") and name.endswith(" 6b86b273.eml") and "/" not in name
    assert message_name("", None, b"1") == "6b86b273.eml"

"""Viewers by access control lists: what servers read differently lets fewer people read."""

import pytest

from conspectus.connectors import EVERYONE
from conspectus_connectors.mailbox_rights import list_viewers

READ, LESS = "lrs", "l"


@pytest.mark.parametrize(
    ("entries", "viewers"),
    [
        ([], ()),
        ([("ann", READ), ("ben", "lrwstipekxa")], ("user:ann", "user:ben")),
        ([("ann", "l"), ("ben", "r"), ("cy", "")], ()),
        ([("anyone", READ)], (EVERYONE,)),
        ([("authenticated", READ), ("ann", READ)], (EVERYONE, "user:ann")),
        ([("anyone", READ), ("ann", LESS), ("ben", READ)], ("user:ben",)),
        ([("anyone", READ), ("-ann", "r"), ("ben", READ)], ("user:ben",)),
        ([("anyone", READ), ("$guests", "")], ()),
        ([("ann", READ), ("-ann", "r")], ()),
        ([("ann", READ), ("-ann", "wt")], ("user:ann",)),
        ([("ann", READ), ("-$guests", "r")], ()),
        ([("ann", READ), ("-anyone", "l")], ()),
        ([("ann", READ), ("!$guests", LESS)], ()),
        ([("ann", READ), ("!$staff", READ), ("$staff", READ), ("group:staff", READ)], ("user:ann",)),
        ([("ann", READ), ("anonymous", READ), ("owner", READ)], ("user:ann",)),
        ([("#anyone", READ), ("#-ann", "r")], ()),
    ],
)
def test_viewers(entries: list[tuple[str, str]], viewers: tuple[str, ...]) -> None:
    assert list_viewers(entries) == viewers

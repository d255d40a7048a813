"""Receipts of deletions add up."""

from conspectus.model.records import Receipt


def test_receipts_add_up_and_are_purged_only_if_both_are() -> None:
    one, other = Receipt(1, 2, 3, purged=True), Receipt(4, 5, 6, purged=True)
    assert one + other == Receipt(5, 7, 9, purged=True)
    assert one + Receipt(erasure_pending=True) == Receipt(1, 2, 3, erasure_pending=True)

"""Loading what stays: it is not looked at for garbage, and later garbage still is."""

import gc

import pytest

from conspectus.web.warmup import freeze_gc


def test_what_was_loaded_is_never_looked_at_again() -> None:
    before = gc.get_freeze_count()
    with freeze_gc():
        assert not gc.isenabled()
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.isenabled()
    assert gc.get_freeze_count() > before
    assert not any(tracked is cycle for tracked in gc.get_objects())


def test_garbage_is_looked_for_after_a_fault_too() -> None:
    with pytest.raises(ImportError), freeze_gc():
        raise ImportError
    assert gc.isenabled()

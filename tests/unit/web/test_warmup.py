"""Settings of the interpreter while a process serves."""

import gc
import sys

from conspectus.web.warmup import COLLECTION_THRESHOLDS, SWITCH_SECONDS, short_waits


def test_threads_switch_often_and_full_collections_are_rare_only_while_it_serves() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    try:
        with short_waits():
            assert sys.getswitchinterval() == SWITCH_SECONDS
            assert gc.get_threshold() == COLLECTION_THRESHOLDS
            assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before

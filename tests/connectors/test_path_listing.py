"""Listings of remotes: what changed since a cursor, in batches, and what is gone."""

from conspectus_connectors.path_listing import ListingProgress, RemoteFile, list_changes, read_fingerprints

FILES = {path: RemoteFile(path, "1") for path in ("a/one", "a/two", "b/three")}


def test_files_that_are_kept_keep_their_fingerprints() -> None:
    [listing] = list_changes(FILES, None, size=10)
    progress = ListingProgress(listing.cursor, size=10)
    progress.keep(["a/one"])
    assert list(progress.add([RemoteFile("a/two", "2")])) == []
    last = progress.finish()
    assert [entry.key for entry in last.entries] == ["a/two"]
    assert (last.gone, last.spaces_gone, last.complete) == (("b/three",), ("b",), False)
    assert read_fingerprints(last.cursor) == {"a/one": "1", "a/two": "2"}


def test_files_that_were_added_come_last_in_the_cursor() -> None:
    """So the first are those that were not looked at for the longest time."""
    [listing] = list_changes(FILES, None, size=10)
    progress = ListingProgress(listing.cursor, size=10)
    progress.keep(["b/three", "a/two"])
    list(progress.add([FILES["a/one"]]))
    assert list(read_fingerprints(progress.finish().cursor) or {}) == ["a/two", "b/three", "a/one"]


def test_the_cursor_of_a_batch_has_what_is_stored_by_then() -> None:
    progress = ListingProgress(None, size=1)
    [batch] = progress.add([FILES["a/one"], FILES["a/two"]])
    assert read_fingerprints(batch.cursor) == {"a/one": "1"}
    [*_, last] = list_changes(FILES, batch.cursor, size=10)
    assert [entry.key for entry in last.entries] == ["a/two", "b/three"]

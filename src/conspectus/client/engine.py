"""The whole product on a server."""

from conspectus.client.work import Work


class RemoteEngine(Work):
    """Open it with `conspectus.connect`; it is safe to use from many tasks.

    It has the methods of Engine, and answers and errors are the same. What the key may not do raises
    NotAllowed; a server that cannot be reached raises ServerUnavailable.
    """

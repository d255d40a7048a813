"""Names that passages mention."""

from conspectus.engine.graphing import Graphing


class Naming(Graphing):
    """Who and what passages are about."""

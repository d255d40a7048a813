"""What mentions mean, and nodes that are one."""

from conspectus.engine.naming import Naming


class Linking(Naming):
    """Which node a name means."""

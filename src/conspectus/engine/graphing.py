"""Graphs: nodes, edges, walks."""

from conspectus.engine.alerting import Alerting


class Graphing(Alerting):
    """What is connected with what."""

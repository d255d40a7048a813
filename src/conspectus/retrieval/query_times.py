"""Read the calendar period that a query of conversations names."""

from datetime import UTC, datetime

from conspectus.retrieval.dates import find_dates
from conspectus.retrieval.named_periods import NamedPeriod, QueryTimes
from conspectus.text.stream_clocks import StreamClock
from conspectus.text.times import EPOCH
from conspectus.time_expressions import ClockFace, describe, describe_unread_times, find_time


def read_query_times(query: str, at: datetime) -> QueryTimes:
    """Return the calendar period that a query names, in the time zone of `at`, the time of the query.

    There is none for a query with days and months that `find_dates` reads.
    """
    if find_dates(query):
        return QueryTimes()
    face = ClockFace(StreamClock(zone=at.tzinfo or UTC), wall=True, first=EPOCH, last=at, now=at)
    expression = find_time(query, face)
    if expression is None:
        return QueryTimes(notices=describe_unread_times(query))
    period = NamedPeriod(expression.start, expression.end, describe(expression, face))
    return QueryTimes(period, describe_unread_times(expression.rest))

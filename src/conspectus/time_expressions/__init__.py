"""Time expressions in a query: "what happens before 12:30" names a range of a stream.

Imports text.
"""

from conspectus.time_expressions.clock_face import ClockFace
from conspectus.time_expressions.parser import TimeExpression, describe, find_time
from conspectus.time_expressions.unread_times import describe_unread_times, unread_times

__all__ = ["ClockFace", "TimeExpression", "describe", "describe_unread_times", "find_time", "unread_times"]

"""What a question says about time, by rule: "what happens before 12:30" names a range of a stream."""

from conspectus.text.moments.face import ClockFace
from conspectus.text.moments.said import TimeSaid, described, time_said

__all__ = ["ClockFace", "TimeSaid", "described", "time_said"]

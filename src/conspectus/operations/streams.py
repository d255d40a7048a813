"""Operations on streams of captions."""

from typing import Final

from conspectus.engine.streams import StreamService
from conspectus.operations.operation import Operation

_STREAM: Final = "/streams/{stream}"
_CAPTIONS: Final = f"{_STREAM}/captions"

STREAM_OPERATIONS: Final = (
    Operation(StreamService.put, "POST", "/streams", spread="stream", id="put_stream"),
    Operation(StreamService.list, "GET", "/streams", id="list_streams"),
    Operation(StreamService.find_moments, "POST", "/streams/search", spread="question", reads=True),
    Operation(
        StreamService.window, "POST", "/streams/context", spread="question", reads=True, id="video_context"
    ),
    Operation(StreamService.clear, "DELETE", _CAPTIONS, unhurried=True, id="clear_stream"),
    Operation(StreamService.get, "GET", _STREAM, id="get_stream"),
)
"""In the order in which paths are matched: a name may hold a slash, so the shorter path comes last."""
CAPTION_OPERATIONS: Final = (Operation(StreamService.captions, "GET", _CAPTIONS, id="list_captions"),)
"""Those whose routes are written out, as their answers need the clock of the stream."""

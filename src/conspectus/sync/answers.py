"""Answer records, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.answers import AnswerService
from conspectus.sync.blocking_service import BlockingService


class BlockingAnswers(BlockingService[AnswerService]):
    """Answer records: windows, recalls and chats that were given."""

    list = blocking(AnswerService.list)
    get = blocking(AnswerService.get)
    delete = blocking(AnswerService.delete)

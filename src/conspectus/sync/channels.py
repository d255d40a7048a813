"""Channels, chat and tasks, blocking."""

from conspectus.bridge.blocking_methods import blocking, generating
from conspectus.engine.channels import ChannelService
from conspectus.engine.chat import ChatService
from conspectus.engine.tasks import TaskService
from conspectus.sync.blocking_service import BlockingService


class BlockingChannels(BlockingService[ChannelService]):
    """Channels: messages, threads and reply chains, and windows for questions in a channel."""

    add_messages = blocking(ChannelService.add_messages)
    list_messages = blocking(ChannelService.list_messages)
    get_reply_chain = blocking(ChannelService.get_reply_chain)
    window = blocking(ChannelService.window)
    import_archive = blocking(ChannelService.import_archive)


class BlockingChat(BlockingService[ChatService]):
    """Chat: answers of a model that cites stored documents."""

    stream = generating(ChatService.stream)


class BlockingTasks(BlockingService[TaskService]):
    """Tasks and attachments."""

    put = blocking(TaskService.put)
    put_many = blocking(TaskService.put_many)
    get = blocking(TaskService.get)
    list = blocking(TaskService.list)
    update = blocking(TaskService.update)
    delete = blocking(TaskService.delete)
    attach = blocking(TaskService.attach)
    detach = blocking(TaskService.detach)
    attachment = blocking(TaskService.attachment)
    attachments = blocking(TaskService.attachments)
    search = blocking(TaskService.search)
    build_context = blocking(TaskService.build_context)

    def using(
        self, *, collection: str = "tasks", source: str = "tasks", tokenizer: str = "o200k_base"
    ) -> "BlockingTasks":
        """Return the tasks of another source, or with another tokenizer."""
        other = self._inner.using(collection=collection, source=source, tokenizer=tokenizer)
        return BlockingTasks(other, self._owner)

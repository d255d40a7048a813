"""Collections, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.collections import CollectionService
from conspectus.sync.blocking_service import BlockingService


class BlockingCollections(BlockingService[CollectionService]):
    """Collections and their sources."""

    get_or_create = blocking(CollectionService.get_or_create)
    create = blocking(CollectionService.create)
    list = blocking(CollectionService.list)
    get = blocking(CollectionService.get)
    update = blocking(CollectionService.update)
    delete = blocking(CollectionService.delete)
    get_or_create_source = blocking(CollectionService.get_or_create_source)
    list_sources = blocking(CollectionService.list_sources)
    get_source = blocking(CollectionService.get_source)
    update_source = blocking(CollectionService.update_source)
    delete_source = blocking(CollectionService.delete_source)

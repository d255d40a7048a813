"""Documents and search, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.documents import DocumentService
from conspectus.engine.search import SearchService
from conspectus.sync.blocking_service import BlockingService


class BlockingDocuments(BlockingService[DocumentService]):
    """Documents: write, read, delete, export and import."""

    add = blocking(DocumentService.add)
    add_files = blocking(DocumentService.add_files)
    wait_until_embedded = blocking(DocumentService.wait_until_embedded)
    get = blocking(DocumentService.get)
    get_by_key = blocking(DocumentService.get_by_key)
    get_text = blocking(DocumentService.get_text)
    get_texts = blocking(DocumentService.get_texts)
    list_chunks = blocking(DocumentService.list_chunks)
    list = blocking(DocumentService.list)
    count = blocking(DocumentService.count)
    export = blocking(DocumentService.export)
    import_lines = blocking(DocumentService.import_lines)
    update = blocking(DocumentService.update)
    delete = blocking(DocumentService.delete)
    delete_by_key = blocking(DocumentService.delete_by_key)
    delete_chunks = blocking(DocumentService.delete_chunks)
    list_relations = blocking(DocumentService.list_relations)
    relate = blocking(DocumentService.relate)
    unrelate = blocking(DocumentService.unrelate)
    delete_by_filter = blocking(DocumentService.delete_by_filter)
    list_quarantined = blocking(DocumentService.list_quarantined)
    release_quarantined = blocking(DocumentService.release_quarantined)


class BlockingSearch(BlockingService[SearchService]):
    """Search: hits, context windows and explanations."""

    __call__ = blocking(SearchService.retrieve)
    retrieve = blocking(SearchService.retrieve)
    window = blocking(SearchService.window)
    explain = blocking(SearchService.explain)
    explain_as = blocking(SearchService.explain_as)
    get_hits = blocking(SearchService.get_hits)
    rerank = blocking(SearchService.rerank)
    search_and_rerank = blocking(SearchService.search_and_rerank)
    augment = blocking(SearchService.augment)
    feedback = blocking(SearchService.feedback)
    add_feedback = blocking(SearchService.add_feedback)
    list_feedback = blocking(SearchService.list_feedback)
    revoke_feedback = blocking(SearchService.revoke_feedback)

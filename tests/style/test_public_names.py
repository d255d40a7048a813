"""The public names, locked: adding, renaming or dropping one is a decision, and belongs in the changelog."""

import conspectus

NAMES = {
    *("CaptionRange", "NewAlert", "NewCaption", "NewEvent", "NewStream"),
    *("And", "Between", "Budget", "ChatRequest", "ConspectusError", "Contains", "ContextWindow"),
    *("Document", "Engine", "Eq", "Exists", "Filter", "Hit", "In", "NewDocument", "NewMessage", "Not", "Or"),
    *(
        "Overlaps",
        "Period",
        "Query",
        "RemoteEngine",
        "Retrieval",
        "Settings",
        "QueryContext",
        "connect",
        "open",
    ),
    *(
        "Attachment",
        "BlockingEngine",
        "Citations",
        "Delta",
        "Fact",
        "Failure",
        "GraphExpansion",
        "MemorySelection",
    ),
    *(
        "MemorySelection",
        "Message",
        "NewEdge",
        "NewMemory",
        "NewNode",
        "Principal",
        "Retention",
        "Scope",
        "Sources",
    ),
    *("Task", "Traversal"),
}


def test_the_public_names_are_these() -> None:
    assert set(conspectus.__all__) == NAMES


def test_every_public_name_exists() -> None:
    assert [name for name in NAMES if not hasattr(conspectus, name)] == []

"""Parameters and fields that several operations share, each declared once."""

from datetime import datetime
from typing import Annotated, Final

from conspectus.model.annotations import Example, Length, LocalPrefix, MayHaveSlash, Range
from conspectus.model.ids import EXAMPLE_ID
from conspectus.model.trust import MinTrust, Origin, Trust

MAX_NAME: Final = 1_000
MAX_KEY: Final = 2_048
"""Of what a document is looked up by in its source; in bytes, too."""
MAX_ID: Final = 200
MAX_TEXT: Final = 100_000_000
MAX_QUERY: Final = 1_000_000
MAX_LIST: Final = 10_000
"""Elements of a list that is written at once."""
MAX_DIMENSIONS: Final = 65_536
MAX_ALERT_STREAMS: Final = 1_000
MAX_WEBHOOK: Final = 2_000

EXAMPLE_TIME: Final = "2026-03-02T08:00:00Z"

Name = Annotated[str, Length(1, MAX_NAME)]
Identifier = Annotated[str, Length(1, MAX_ID)]
Label = Annotated[str, Length(0, MAX_NAME)]
Key = Annotated[str, Length(0, MAX_KEY)]
Text = Annotated[str, Length(0, MAX_TEXT)]

CollectionName = Annotated[Name, MayHaveSlash, "Name or id of a collection.", Example("notes")]
MemoryCollection = Annotated[Name, "Name or id of a collection of memories."]
SourceName = Annotated[Name, "Name or id of a source.", Example("handbook")]
SourceIdentifier = Annotated[Identifier, "Id of a source.", Example("handbook")]
GraphName = Annotated[Name, MayHaveSlash, "Name or id of a graph.", Example("default")]
StreamName = Annotated[Name, MayHaveSlash, "Name or id of a stream.", Example("camera-1")]
ChannelName = Annotated[Name, "Name or id of a channel.", Example("operations")]
UserName = Annotated[Name, "Name or id of a user.", Example("ann")]
GroupName = Annotated[Name, "Name or id of a group.", Example("operators")]
ConnectionName = Annotated[Name, "Name of a connection.", Example("wiki")]
NodeName = Annotated[str, "Id of a node.", Example("backup")]
DocumentKey = Annotated[str, Length(1, MAX_KEY), "Key of a document in its source.", Example("backup.md")]
DocumentIdentifier = Annotated[Identifier, "Id of a document.", Example(EXAMPLE_ID)]
AlertIdentifier = Annotated[Identifier, "Id of an alert.", Example("0195f3a1c2d47e80b6a4c1d2e3f40a1e")]
JobIdentifier = Annotated[Identifier, "Id of a job.", Example("0195f3a1c2d47e80b6a4c1d2e3f40b0b")]
MemoryIdentifier = Annotated[Identifier, "Id of a memory.", Example("0195f3a1c2d47e80b6a4c1d2e3f40c0c")]
AnswerIdentifier = Annotated[Name, "Id of an answer record.", Example(EXAMPLE_ID)]
QuestionSetIdentifier = Annotated[Name, "Id of a question set.", Example(EXAMPLE_ID)]
QuestionIdentifier = Annotated[Name, "Id of a question.", Example(EXAMPLE_ID)]
RunIdentifier = Annotated[Name, "Id of a run.", Example(EXAMPLE_ID)]
FeedbackIdentifier = Annotated[Name, "Id of a feedback.", Example(EXAMPLE_ID)]
SessionIdentifier = Annotated[Name, "Id of a session.", Example("6f1c0b0e5a3d4f1e8c2b7a9d0e4f6a1b")]
InvitationIdentifier = Annotated[Name, "Id of an invitation.", Example("b1d2f3a40c5e6f708192a3b4c5d6e7f8")]
IdentityIdentifier = Annotated[Name, "Id of an identity.", Example("0d4f6a1b-6f1c-5e0b-8a3d-4f1e8c2b7a9d")]
GroupClaimIdentifier = Annotated[
    Name, "Id of the claim of a group.", Example("6f1c0b0e-5a3d-5f1e-8c2b-7a9d0e4f6a1b")
]
KeyIdentifier = Annotated[Name, "Id of an API key.", Example("0195f3a1c2d47e80b6a4c1d2e3f40d0d")]

PageLimit = Annotated[int, Range(1, "max_page_rows"), "Maximum number of results.", Example(10)]
ExportLimit = Annotated[int, Range(1, "max_export_lines"), "Maximum lines of a page.", Example(10)]
GraphLimit = Annotated[int, Range(1, "max_limit"), "Maximum number of results.", Example(10)]
DEFAULT_HITS = 10
"""Hits of a search that names no limit."""
HitLimit = Annotated[int, Range(0, "max_limit"), "Maximum number of hits.", Example(10)]
Cursor = Annotated[str, Length(0, MAX_NAME), "The `next` of the page before.", Example("bmV4dA")]
QueryText = Annotated[str, Length(0, MAX_QUERY), "Text to search for.", Example("When does the backup run?")]
Vector = Annotated[tuple[float, ...], Length(1, MAX_DIMENSIONS)]
MinSimilarity = Annotated[float, Range(-1, 1), "Lowest cosine similarity of a hit."]
MinConfidence = Annotated[float, Range(0, 1), "Lowest probability that the hits hold the answer."]
LowestTrust = Annotated[MinTrust, "Lowest trust level of a result."]
AsOf = Annotated[datetime, "Answer with the state known at that instant."]
ThreadMessages = Annotated[
    int, Range(0, "max_thread_messages"), "Maximum number of messages of its thread added to a hit."
]
Tokenizer = Annotated[
    Name,
    LocalPrefix("hf:", "reads a file and can be used locally only"),
    "Tokenizer that counts: o200k_base, cl100k_base or an estimator.",
]
TokenLimit = Annotated[int, Range(0)]

Purge = Annotated[bool, "Wait until no file holds the text any more."]
Wait = Annotated[bool, "Wait until the vectors are computed.", Example(True)]
DryRun = Annotated[bool, "Only count what would be deleted."]
Fingerprint = Annotated[Label, "Fingerprint that was read; nothing is written if it is another one by now."]
WriterOrigin = Annotated[Origin, "Who wrote it and how; can only lower the trust level."]
WriterTrust = Annotated[Trust, "A lower trust level than that of its origin."]
ListedEntities = Annotated[tuple[Label, ...], Length(0, 1_000), "Names that it mentions."]
KeptDays = Annotated[float, Range(0, 365_000)]

StoredId = Annotated[str, Example(EXAMPLE_ID)]
PersonName = Annotated[str, Example("ann")]
StoredText = Annotated[str, Example("The backup runs every night at two.")]
StoredTitle = Annotated[str, Example("Backups")]
StoredKey = Annotated[str, Example("backup.md")]
StoredCollection = Annotated[str, Example("notes")]
StoredSource = Annotated[str, Example("handbook")]
AskedQuery = Annotated[str, Example("When does the backup run?")]
StartText = Annotated[str, Example("00:12:30")]
EndText = Annotated[str, Example("00:12:38")]

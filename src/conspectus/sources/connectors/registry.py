"""Create the connector of a connection from its options."""

from collections.abc import Collection
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.records import Json, Metadata
from conspectus.ports.web import Connector, Fetcher
from conspectus.sources.connectors.git_repository import GitRepository, Repository
from conspectus.sources.connectors.markdown_folder import MarkdownFolder
from conspectus.sources.connectors.mediawiki import MediaWiki
from conspectus.sources.connectors.mediawiki_api import MediaWikiApi
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.web.address_policy import AddressPolicy


@dataclass(frozen=True, slots=True)
class Connectors:
    """Creates connectors. `copies` is the folder for clones of repositories."""

    copies: Path
    files: LocalFiles
    boundary: AddressPolicy

    def of(self, connection: Connection, fetcher: Fetcher) -> Connector:
        """Return the connector of a connection. Raises InvalidInput for an unknown name or option."""
        options = connection.options
        match connection.connector:
            case "markdown":
                _require_options(options, needed={"path"}, more={"watch"})
                if not isinstance(options.get("watch", False), bool):
                    raise InvalidInput("watch", "must be true or false")
                path = Path(_text(options, "path"))
                if not path.is_absolute():
                    raise InvalidInput("path", "must be an absolute path")
                return MarkdownFolder(path, files=self.files)
            case "git":
                _require_options(options, needed={"address"}, more={"branch", "folder"})
                repository = Repository(
                    _text(options, "address"),
                    branch=_text(options, "branch") if "branch" in options else None,
                    folder=_text(options, "folder") if "folder" in options else "",
                    boundary=self.boundary,
                )
                return GitRepository(repository, self.copies / connection.id, files=self.files)
            case "mediawiki":
                _require_options(options, needed={"address"}, more={"namespaces"})
                api = MediaWikiApi(fetcher, _text(options, "address"))
                return MediaWiki(api, namespaces=_numbers(options.get("namespaces")))
        raise InvalidInput("connector", f"{connection.connector!r} is not markdown, git or mediawiki")


def _require_options(options: Metadata, *, needed: Collection[str], more: Collection[str] = ()) -> None:
    for name in needed:
        if name not in options:
            raise InvalidInput("options", f"{name} is missing")
    for name in options:
        if name not in {*needed, *more}:
            raise InvalidInput("options", f"{name!r} is not an option of this connector")


def _text(options: Metadata, name: str) -> str:
    value = options[name]
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInput(name, "must be a string")
    return value


def _numbers(value: Json) -> list[int] | None:
    if value is None:
        return None
    numbers = [number for number in value if isinstance(number, int)] if isinstance(value, list) else []
    if not numbers or not isinstance(value, list) or len(numbers) != len(value):
        raise InvalidInput("namespaces", "must be a list of numbers")
    return numbers

"""Files of JSON Lines: pages of an export are written, and lines of an import are read."""

from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Protocol

from conspectus.errors import InvalidInput

if TYPE_CHECKING:
    from conspectus.ports import Progress


class ExportPage(Protocol):
    """A page of an export."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines."""

    @property
    def next(self) -> str | None:
        """The cursor of the rest."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Numbers of what no line contains, by name."""


def write_pages(
    pages: Callable[..., ExportPage], target: IO[str], report: "Progress | None"
) -> tuple[int, Mapping[str, int]]:
    """Write all pages. Return the number of lines, and the numbers of what no line contains, by name."""
    after, count = None, 0
    while True:
        page = pages(after=after)
        target.writelines(f"{line}\n" for line in page.lines)
        count += len(page.lines)
        if report is not None:
            report("exporting", count, 0)
        after = page.next
        if after is None:
            return count, page.left_out


def read_lines(source: IO[bytes]) -> Iterator[str]:
    """Yield the lines as text. Raises InvalidInput with the number of one that is not UTF-8."""
    for number, raw in enumerate(source, 1):
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"line {number}", f"is not UTF-8: {error.reason}") from None

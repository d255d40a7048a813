"""A child process that reads files of binary formats: `python -m …files.parser_process`.

It writes `ready`. For each file it reads one line of JSON and then the bytes from standard input, and writes
one line of JSON. After its limits are set, it cannot open files or connections. An unexpected failure of a
file ends the process.
"""

import codecs
import encodings
import json
import pkgutil
import resource
import select
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, TypeAlias

from conspectus.sources.files.docx import read_word
from conspectus.sources.files.email import read_mail
from conspectus.sources.files.epub import read_book
from conspectus.sources.files.extract import Extract, Oversized, Refused, Unsupported
from conspectus.sources.files.odf import read_open_document
from conspectus.sources.files.pdf import read_pdf
from conspectus.sources.files.pptx import read_slides
from conspectus.sources.files.xlsx import read_sheets
from conspectus.sources.files.zip_xml import Archive

Answer: TypeAlias = Mapping[str, Any]

IDLE_SECONDS = 10
COMPLAINTS = 100_000
OLD_DOCUMENTS = {"WordDocument": "DOC", "PowerPoint Document": "PPT", "__properties_version1.0": "MSG"}
WORKBOOKS = frozenset({"xl/workbook.xml", "xl/workbook.bin"})
ENCRYPTED = "EncryptedPackage"


def main() -> None:
    """Process files until the input ends, or the process was idle for a while."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # Later on no module can be loaded.
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            codecs.lookup(module.name)
        except LookupError:
            continue
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (COMPLAINTS, COMPLAINTS))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    target.write(b"ready\n")
    target.flush()
    while select.select([source], [], [], IDLE_SECONDS)[0] and (line := source.readline()):
        request = json.loads(line)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        until = int(usage.ru_utime + usage.ru_stime) + 1 + request["seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], resource.RLIM_INFINITY))
        answer = answered(source, request)
        target.write(json.dumps(answer).encode() + b"\n")
        target.flush()


def answered(source: BinaryIO, request: Mapping[str, Any]) -> Answer:
    """Process one request, and return the answer."""
    data = source.read(request["size"])
    try:
        extract = READERS[request["kind"]](data, request["unpacked"])
        if len(extract.text) > request["unpacked"]:
            raise Oversized(len(extract.text), request["unpacked"])
        return {"extract": asdict(extract)}
    except Oversized as error:
        return {"size": error.size, "limit": error.limit}
    except Unsupported as error:
        return {"unsupported": str(error)}
    except Refused as error:
        return {"refused": str(error)}
    except RecursionError:
        return {"refused": "is nested too deeply"}


def _zipped(data: bytes, unpacked: int) -> Extract:
    """Return the reader of an office document or EPUB by the parts of its archive."""
    archive = Archive(data, unpacked)
    names = set(archive.names())
    if "meta-inf/container.xml" in names:
        return read_book(archive)
    if names & WORKBOOKS:
        # This checks the unpacked size of all parts.
        for name in archive.names():
            archive.read(name)
        return read_sheets(data, Archive(data, unpacked) if "xl/workbook.xml" in names else None)
    for folder, read in (("word/", read_word), ("ppt/", read_slides)):
        if any(name.startswith(folder) for name in names):
            return read(archive)
    if "content.xml" in names:
        return read_open_document(archive)
    raise Unsupported("unsupported format (ZIP archive). Unpack it first.")


def _compound(data: bytes, _: int) -> Extract:
    """Raise an error for an office document from before 2007, or an encrypted one."""
    for name, kind in OLD_DOCUMENTS.items():
        if name.encode("utf-16-le") in data:
            raise Unsupported(f"unsupported format ({kind}). Convert it to DOCX, XLSX or PPTX.")
    return _old_workbook(data, _)


def _old_workbook(data: bytes, _: int) -> Extract:
    if ENCRYPTED.encode("utf-16-le") in data:
        raise Refused("is encrypted with a password")
    return read_sheets(data)


READERS: Mapping[str, Callable[[bytes, int], Extract]] = {
    "pdf": lambda data, _: read_pdf(data),
    "zip": _zipped,
    "compound": _compound,
    "workbook": _old_workbook,
    "mail": lambda data, _: read_mail(data),
}

if __name__ == "__main__":
    main()

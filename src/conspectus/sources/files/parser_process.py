"""A child process that reads files of binary formats: `python -m …files.parser_process`.

It writes `ready`. For each file it reads one line of JSON and then the bytes from standard input, and writes
one line of JSON, then the bytes of the files inside it. After its limits are set, it cannot open files or
connections. An unexpected failure of a file ends the process. Tesseract is loaded if there are arguments: its
languages, and the folder of their data.
"""

import codecs
import encodings
import json
import mimetypes
import pkgutil
import resource
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, BinaryIO, TypeAlias

from conspectus.sources.files import exif, outlook
from conspectus.sources.files.docx import read_word
from conspectus.sources.files.email import read_mail, read_mailbox
from conspectus.sources.files.epub import read_book
from conspectus.sources.files.extract import Extract, Limits, Oversized, Refused, Unsupported
from conspectus.sources.files.file_properties import with_core_properties
from conspectus.sources.files.html_photos import read_page_with_photos
from conspectus.sources.files.ocr import Recognizer, RecognizerNeeded, UnloadedRecognizer, load_recognizer
from conspectus.sources.files.odf import read_open_document
from conspectus.sources.files.outlook import read_message
from conspectus.sources.files.pdf import read_pdf
from conspectus.sources.files.pictures import read_picture
from conspectus.sources.files.pptx import read_slides
from conspectus.sources.files.tar_archives import read_tar
from conspectus.sources.files.xlsx import read_sheets
from conspectus.sources.files.zip_archives import read_zip
from conspectus.sources.files.zip_xml import Archive

Answer: TypeAlias = Mapping[str, Any]

IDLE_SECONDS = 10
COMPLAINTS = 100_000
OLD_DOCUMENTS = {"WordDocument": ("DOC", "DOCX"), "PowerPoint Document": ("PPT", "PPTX")}
OUTLOOK_MESSAGE = "__properties_version1.0"
OFFICE_PARTS = frozenset({"[content_types].xml", "_rels/.rels", "mimetype", "meta-inf/container.xml"})
"""Parts that an office document or an EPUB has, whatever the name of its file."""
WORKBOOKS = frozenset({"xl/workbook.xml", "xl/workbook.bin"})
MAIN_PARTS = frozenset({"word/document.xml", "ppt/presentation.xml", "content.xml", "meta-inf/container.xml"})
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
    mimetypes.init(files=())
    outlook.load_library()
    exif.load_library()
    recognizer = load_recognizer(*sys.argv[1:]) if len(sys.argv) > 1 else None
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
        answer, contents = answer_request(source, request, recognizer)
        target.write(json.dumps(answer).encode() + b"\n")
        for content in contents:
            target.write(content)
        target.flush()


def answer_request(
    source: BinaryIO, request: Mapping[str, Any], recognizer: Recognizer | None = None
) -> tuple[Answer, Sequence[bytes]]:
    """Process one request; return the answer, and the bytes of the files inside the file."""
    data = source.read(request["size"])
    limits = Limits(request["unpacked"], request["members"], request["ratio"])
    if recognizer is not None:
        recognizer.begin_file(request["seconds"])
    try:
        extract = _extract(request, data, limits, recognizer)
        if len(extract.text) > limits.unpacked:
            raise Oversized(len(extract.text), limits.unpacked)
    except Oversized as error:
        return {"size": error.size, "limit": error.limit}, ()
    except Unsupported as error:
        return {"unsupported": str(error)}, ()
    except Refused as error:
        return {"refused": str(error)}, ()
    except RecursionError:
        return {"refused": "is nested too deeply"}, ()
    except RecognizerNeeded:
        return {"recognizer_needed": True}, ()
    contents: list[bytes] = []
    return {"extract": _extract_fields(extract, contents)}, contents


def _extract_fields(extract: Extract, contents: list[bytes]) -> Answer:
    """Return the fields of an extract; the bytes of the files inside it are added to the contents."""
    members = []
    for member in extract.members:
        contents.append(member.data)
        inner = None if member.extract is None else _extract_fields(member.extract, contents)
        members.append([member.name, len(member.data), member.skipped, member.refused, inner])
    return {**asdict(replace(extract, members=())), "members": members}


def _extract(
    request: Mapping[str, Any], data: bytes, limits: Limits, recognizer: Recognizer | None
) -> Extract:
    """Read a file; only some readers need what recognizes the text of images."""
    match request["kind"]:
        case "pdf" if request["problem"]:
            return read_pdf(data, problem=request["problem"])
        case "pdf":
            return read_pdf(data, recognizer or UnloadedRecognizer())
        case "picture":
            if recognizer is None:
                raise RecognizerNeeded
            return read_picture(data, recognizer)
        case kind:
            return READERS[kind](data, limits)


def _read_zipped(data: bytes, limits: Limits) -> Extract:
    """Read an office document or EPUB, known by the parts of its archive, or the members of another."""
    names = set(Archive(data, limits.unpacked).names())
    is_office = names & OFFICE_PARTS and (names & WORKBOOKS or names & MAIN_PARTS)
    return _read_office(data, limits) if is_office else read_zip(data, limits)


def _read_office(data: bytes, limits: Limits) -> Extract:
    """Read an office document or EPUB. Raises Refused for an archive that is neither."""
    archive = Archive(data, limits.unpacked)
    names = set(archive.names())
    if "meta-inf/container.xml" in names:
        return read_book(archive)
    if names & WORKBOOKS:
        # This checks the unpacked size of all parts.
        for name in archive.names():
            archive.read(name)
        sheet_parts = archive.unread() if "xl/workbook.xml" in names else None
        return with_core_properties(read_sheets(data, sheet_parts), archive)
    for folder, read in (("word/", read_word), ("ppt/", read_slides)):
        if any(name.startswith(folder) for name in names):
            return with_core_properties(read(archive), archive)
    if "content.xml" in names:
        return read_open_document(archive)
    raise Refused("is a ZIP archive, but no office document: name it .zip to read the files in it")


def _read_compound(data: bytes, limits: Limits) -> Extract:
    """Read a message of Outlook or a workbook; raise an error for other documents from before 2007."""
    if OUTLOOK_MESSAGE.encode("utf-16-le") in data:
        return read_message(data)
    for name, (kind, successor) in OLD_DOCUMENTS.items():
        if name.encode("utf-16-le") in data:
            raise Unsupported(f"unsupported format ({kind}). Convert it to {successor}.")
    return _read_old_workbook(data, limits)


def _read_old_workbook(data: bytes, _: Limits) -> Extract:
    if ENCRYPTED.encode("utf-16-le") in data:
        raise Refused("is encrypted with a password")
    return read_sheets(data)


READERS: Mapping[str, Callable[[bytes, Limits], Extract]] = {
    "zip": _read_zipped,
    "office": _read_office,
    "compound": _read_compound,
    "workbook": _read_old_workbook,
    "page": lambda data, _: read_page_with_photos(data),
    "mail": lambda data, _: read_mail(data),
    "mailbox": read_mailbox,
    "tar": read_tar,
}

if __name__ == "__main__":
    main()

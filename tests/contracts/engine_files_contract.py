"""What every engine must do with documents as files: paths, lines, patterns and budgets."""

import pytest

from conspectus.errors import InvalidInput, NotFound
from conspectus.model.files import FilePage
from conspectus.model.filter import Eq
from conspectus.model.records import NewDocument
from tests.support.engine_samples import AnyEngine

KEYS = ["a/b/deep.md", "a/b/other.txt", "a.md", "a", "a0", "ä/100%\n.md", "/abs/x", "z"]
LOG = "\n".join(f"line {number}: {'failed' if number % 3 == 0 else 'ok'}" for number in range(1, 31))


def paths(page: FilePage) -> list[str]:
    """The paths of a page."""
    return [file.path for file in page.entries]


async def stocked(engine: AnyEngine) -> None:
    """Keys that make folders, in names with a slash."""
    documents = [NewDocument(f"text of {key}", key=key, metadata={"n": len(key)}) for key in KEYS]
    await engine.add(documents, source="in/put", collection="team/notes")
    await engine.add(
        NewDocument(LOG, "Log", key="run.log"), source="logs", collection="team/notes", wait=True
    )


class FilesContract:
    """Documents as files."""

    async def test_folders_are_listed(self, engine: AnyEngine) -> None:
        """Collections, sources, and what the slashes of keys make."""
        await stocked(engine)
        root, home, source = "/", "/team%2Fnotes/", "/team%2Fnotes/in%2Fput/"
        assert paths(await engine.files.list(root)) == [home]
        assert paths(await engine.files.list(home)) == [source, f"{home}logs/"]
        listed = await engine.files.list(source)
        names = [path.removeprefix(source) for path in paths(listed)]
        assert names == ["/", "a", "a.md", "a/", "a0", "z", "ä/"]
        assert [file.folder for file in listed.entries] == [True, False, False, True, False, False, True]
        assert paths(await engine.files.list(f"{source}a")) == [f"{source}a", f"{source}a/b/"]
        assert paths(await engine.files.list(f"{source}a/b")) == [f"{source}{key}" for key in KEYS[:2]]
        assert paths(await engine.files.list(f"{source}ä/")) == [f"{source}ä/100%25%0A.md"]
        assert paths(await engine.files.list(f"{source}/abs")) == [f"{source}/abs/x"]

    async def test_a_listing_goes_on_after_each_entry(self, engine: AnyEngine) -> None:
        """Of the root, of a collection and of a folder, one entry a page."""
        await stocked(engine)
        for path in ("/team%2Fnotes", "/team%2Fnotes/in%2Fput"):
            all_paths, after, listed = paths(await engine.files.list(path)), None, []
            while True:
                page = await engine.files.list(path, after=after, limit=1)
                listed += paths(page)
                if (after := page.next) is None:
                    break
            assert listed == all_paths

    async def test_large_folders_take_few_reads(self, engine: AnyEngine) -> None:
        """More documents than are read at once, in and beside a folder."""
        many = [NewDocument(f"{number}", key=f"deep/{number:04}") for number in range(450)]
        await engine.add([*many, NewDocument("after", key="deeq")])
        page = await engine.files.list("/default/default")
        assert paths(page) == ["/default/default/deep/", "/default/default/deeq"]
        assert len((await engine.files.find("/default/default/deep", limit=1_000)).entries) == 450
        assert (await engine.files.grep("^449$")).matches == 1

    async def test_lines_are_read(self, engine: AnyEngine) -> None:
        """With their place in the document; a budget is exact and goes on where it ended."""
        await stocked(engine)
        path = "/team%2Fnotes/logs/run.log"
        head = await engine.files.read(path, first_line=2, last_line=3)
        assert head.text == LOG[head.start : head.end] == "line 2: ok\nline 3: failed\n"
        assert (head.first_line, head.last_line, head.lines, head.next, head.title) == (2, 3, 30, None, "Log")
        pieces, start = [], 0
        while True:
            piece = await engine.files.read(path, start=start, max_tokens=40)
            assert piece.tokens <= 40
            pieces.append(piece.text)
            if piece.next is None:
                break
            start = piece.next
        assert "".join(pieces) == LOG
        assert len(pieces) > 3
        assert all(piece.endswith("\n") for piece in pieces[:-1])
        assert (await engine.files.read(path, first_line=99)).text == ""

    async def test_lines_are_found(self, engine: AnyEngine) -> None:
        """By a regular expression or a text, with lines around them, each with its place."""
        await stocked(engine)
        matches = await engine.files.grep("FAIL(ED|URE)$", ignore_case=True, context=1, limit=2)
        (log,) = matches.files
        assert [(line.number, line.matched) for line in log.lines] == [
            (2, False), (3, True), (4, False), (5, False), (6, True), (7, False),
        ]  # fmt: skip
        assert all(LOG[line.start : line.end] == line.text for line in log.lines)
        assert (matches.matches, matches.complete, len(matches.notices)) == (2, False, 1)
        log_matches = await engine.files.grep("failed", "/team%2Fnotes/logs")
        assert (log_matches.matches, log_matches.searched, log_matches.complete) == (
            10,
            1,
            True,
        )
        assert log_matches.text.splitlines()[:2] == [
            "/team%2Fnotes/logs/run.log (Log)",
            "3:line 3: failed",
        ]
        fitting = await engine.files.grep("failed", max_tokens=60)
        assert (fitting.tokens <= 60, fitting.complete, fitting.matches) == (True, False, 10)
        assert (await engine.files.grep("a.md", literal=True)).matches == 1
        assert (await engine.files.grep("nowhere")).files == ()

    async def test_files_are_found(self, engine: AnyEngine) -> None:
        """By a glob of the name or of the whole key, and by a filter; grep takes the same."""
        await stocked(engine)
        source = "/team%2Fnotes/in%2Fput"
        assert paths(await engine.files.find(name="*.txt")) == [f"{source}/a/b/other.txt"]
        assert paths(await engine.files.find(source, name="a/*.md")) == [f"{source}/a/b/deep.md"]
        assert paths(await engine.files.find("/", filter=Eq(("n",), 1))) == [f"{source}/a", f"{source}/z"]
        page = await engine.files.find(f"{source}/a", limit=2)
        assert paths(page) == [f"{source}/a", f"{source}/a/b/deep.md"]
        rest = await engine.files.find(f"{source}/a", after=page.next)
        assert paths(rest) == [f"{source}/a/b/other.txt"]
        assert [file.path for file in (await engine.files.grep("text", name="z")).files] == [f"{source}/z"]
        assert (await engine.files.grep("text", filter=Eq(("n",), 1))).searched == 2

    async def test_folders_of_a_disk_have_short_names(self, engine: AnyEngine) -> None:
        """Unless another source would have the same; the whole name is always accepted."""
        for name in ("/home/ann/docs", "C:\\notes\\de", "/a/same", "/b/same"):
            await engine.add(NewDocument(f"a needle in {name}", key="k"), source=name)
        folders = [f"/default/{name}" for name in ("%2Fa%2Fsame", "%2Fb%2Fsame", "de", "docs")]
        assert paths(await engine.files.list("/default")) == [f"{name}/" for name in folders]
        assert paths(await engine.files.find()) == [f"{name}/k" for name in folders]
        assert sorted(file.path for file in (await engine.files.grep("needle")).files) == [
            f"{name}/k" for name in folders
        ]
        for path in ("/default/docs/k", "/default/%2Fhome%2Fann%2Fdocs/k"):
            assert (await engine.files.read(path)).text == "a needle in /home/ann/docs"
        assert paths(await engine.files.find(after="/default/de/k")) == ["/default/docs/k"]

    async def test_hostile_patterns_and_paths(self, engine: AnyEngine) -> None:
        """A pattern that would take exponential time is answered; what is not supported is refused."""
        await engine.add(NewDocument("a" * 200_000, key="a"))
        assert (await engine.files.grep("(a*)*b|(a|aa)+$x|(.*)*=")).complete
        for pattern in ("", "(", "a)(b", "(?=a)", r"(a)\1", "(a{500}){500}", "(.{99}){99}", "x" * 2_000):
            with pytest.raises(InvalidInput):
                await engine.files.grep(pattern)
        assert not (await engine.files.grep("b", max_seconds=0)).complete
        for path in ("", "default", "//x", "/default//x", "/" * 5_000):
            with pytest.raises(InvalidInput):
                await engine.files.list(path)
        for path in ("/none", "/default/none", "/default/default/none", "/default/default/a/b"):
            with pytest.raises(NotFound) as caught:
                await engine.files.list(path)
            assert (caught.value.kind, caught.value.name) == ("file", path)
        for wrong in ({"first_line": 0}, {"start": 10**9}, {"last_line": 0}, {"max_tokens": 1}):
            with pytest.raises(InvalidInput):
                await engine.files.read("/default/default/a", **wrong)

"""Documents that were split otherwise stay until they are added again."""

from dataclasses import replace

import conspectus
from conspectus.model.records import NewDocument
from conspectus.settings import Settings


async def test_documents_that_were_split_otherwise_stay_until_they_are_added_again(tmp_path):
    body = "Some words of a section that says something. " * 9
    text = "".join(f"# {name}\n\n{body}\n\n" for name in "ABC")
    new = NewDocument(text, key="k", syntax="markdown")
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        [written] = await engine.add(replace(new, spans=((0, len(text)),)))
        await engine.documents.update(written.id, title="Title")
        assert len(await engine.documents.list_chunks(written.id)) == 1
        assert (await engine.maintenance.check()).clean
        [again] = await engine.add(new)
        assert (again.id, again.outcome, again.chunks) == (written.id, "replaced", 2)
        assert (await engine.add(new))[0].outcome == "unchanged"

/** Corrections of a document: the text of one passage, or the whole document out of search. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure } from "../../ui/action";
import { Dialog } from "../../ui/controls";
import type { Undoing } from "../../ui/undo";

type Document = Schemas["Document"];
type Chunk = Schemas["Chunk"];
type Place = Schemas["PlaceBody"];

const FOUND_IN_TEXT = ["markdown", "rst"];
/** Other kinds are corrected where they are shown: memories, captions, events. */
const CORRECTED_HERE = ["page", "message"];

export const isCorrectedHere = (document: Document): boolean => CORRECTED_HERE.includes(document.kind);

/** Pages and headings that a new text would lose; headings of Markdown are in the text. */
function placesOf(document: Document, chunks: readonly Chunk[]): Place[] {
  const hasPages = chunks.some((chunk) => chunk.page !== null);
  if (!hasPages && FOUND_IN_TEXT.includes(document.syntax)) return [];
  return chunks
    .filter((chunk) => chunk.page !== null || chunk.heading !== null)
    .map(({ start, page, heading, box }) => ({ start, page, headings: heading === null ? [] : [heading], box: (box as Place["box"]) ?? null }));
}

/** Places of a text in which the characters of one passage were replaced. */
const moved = (places: readonly Place[], after: number, by: number): Place[] =>
  places.map((position) => (position.start > after ? { ...position, start: position.start + by } : position));

export function CorrectPassageDialog({
  document,
  text,
  chunks,
  chunk,
  undoing,
  onClose,
}: {
  document: Document;
  text: string;
  chunks: readonly Chunk[];
  chunk: Chunk;
  undoing: Undoing;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(chunk.text);
  const closeIf = (done: Promise<boolean>) => void done.then((isDone) => isDone && onClose());
  const write = async (passage: string) => {
    const letters = Array.from(text);
    const changed = [...letters.slice(0, chunk.start), ...Array.from(passage), ...letters.slice(chunk.end)].join("");
    const places = placesOf(document, chunks);
    const grown = Array.from(passage).length - (chunk.end - chunk.start);
    const headers = { "If-Match": `"${document.fingerprint}"` };
    const body = { text: changed, places: moved(places, chunk.start, grown) };
    await api.updateDocument({ document: document.id, ...body }, { headers });
    const { fingerprint } = await api.getDocument({ document: document.id });
    return () => api.updateDocument({ document: document.id, text, places }, { headers: { "If-Match": `"${fingerprint}"` } });
  };
  return (
    <Dialog title="Correct this passage" busy={undoing.busy} onClose={onClose}>
      <form
        class="correct-form"
        onSubmit={(event) => {
          event.preventDefault();
          closeIf(undoing.apply("The passage is corrected.", () => write(draft)));
        }}
      >
        <label>
          <span class="label">Text</span>
          <textarea class="field" rows={10} required value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
        </label>
        <Failure text={undoing.failure} />
        <p class="cluster">
          <button class="btn primary" type="submit" disabled={draft === chunk.text || undoing.busy}>
            Save
          </button>
          <button
            class="btn danger"
            type="button"
            disabled={undoing.busy}
            onClick={() => closeIf(undoing.apply("The passage is removed from the text.", () => write("")))}
          >
            Remove from the text
          </button>
        </p>
        <p class="tiny dim">
          The text is cut into passages anew.
          {" "}Where the document comes from a connection or a folder, the next change there replaces the correction.
        </p>
      </form>
    </Dialog>
  );
}

/** Takes a document out of all searches until a reviewer releases it. */
export function excludeDocument(undoing: Undoing, document: Document): void {
  void undoing.apply("The document is excluded from search. It waits under Operations, Quarantine.", async () => {
    await api.updateDocument({ document: document.id, trust: "quarantined" });
    return () => api.releaseQuarantined({ document: document.id });
  });
}

import { api, type Schemas } from "../../api/client";
import { counted, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { failureRemarks, Remarks } from "../../ui/remarks";

type DocumentPreview = Schemas["DocumentPreview"];
type ChunkPreview = Schemas["ChunkPreview"];

const READ_BY: Record<string, string> = { ocr: "read by OCR, may have errors", speech: "read from speech" };

/** Files of which a preview is read; those after them are added without one. */
const MAX_PREVIEWED = 20;

/** Files that were chosen: what they would become, before they are added. */
export function Preview({
  collection,
  source,
  files,
  onAdd,
  onCancel,
}: {
  collection: string;
  source: string;
  files: readonly File[];
  onAdd: () => void;
  onCancel: () => void;
}) {
  const loaded = useLoad(
    (signal) => api.previewFiles({ collection, source, files: previewed(files) }, { signal }),
    [collection, files],
  );
  return (
    <section class="file-preview" aria-label="Preview">
      <div class="cluster">
        <h2>{counted(files.length, "file")} to add</h2>
        <button class="btn primary" type="button" onClick={onAdd}>
          Add {counted(files.length, "file")}
        </button>
        <button class="btn" type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
      <Show of={loaded} what="the preview">
        {(preview) => (
          <>
            <p class="sub" role="status">
              {files.length > MAX_PREVIEWED && `The first ${MAX_PREVIEWED} files: `}
              {summary(preview.documents)}; nothing is stored yet
            </p>
            <Remarks title="Cannot be read" remarks={failureRemarks(preview.failures)} failed />
            <Remarks title="Skipped" remarks={Object.entries(preview.skipped_files)} />
            <Remarks title="Notices" remarks={Object.entries(preview.notices)} />
            {preview.documents.map((document) => (
              <DocumentChunks key={document.key} document={document} />
            ))}
          </>
        )}
      </Show>
    </section>
  );
}

const previewed = (files: readonly File[]) => files.slice(0, MAX_PREVIEWED);

function summary(documents: readonly DocumentPreview[]): string {
  const chunks = documents.reduce((sum, document) => sum + document.chunk_count, 0);
  const tokens = documents.reduce((sum, document) => sum + document.tokens, 0);
  return `${counted(documents.length, "document")}, ${counted(chunks, "chunk")}, ${counted(tokens, "token")}`;
}

function DocumentChunks({ document }: { document: DocumentPreview }) {
  const hidden = document.chunk_count - document.chunks.length;
  const how = READ_BY[document.read_by];
  return (
    <details class="preview-document">
      <summary>
        <bdi>{document.title}</bdi> <bdi class="sub">{document.key}</bdi>{" "}
        <span class="sub">
          {counted(document.chunk_count, "chunk")}, {counted(document.tokens, "token")}
          {how !== undefined && `, ${how}`}
        </span>
      </summary>
      {document.quarantined !== null && <p class="failed">{document.quarantined}</p>}
      <ol>
        {document.chunks.map((chunk) => (
          <Chunk key={chunk.position} chunk={chunk} title={document.title} />
        ))}
      </ol>
      {hidden > 0 && <p class="sub">and {wholeNumber(hidden)} more</p>}
    </details>
  );
}

function Chunk({ chunk, title }: { chunk: ChunkPreview; title: string }) {
  const page = chunk.page === null ? "" : `p. ${chunk.page}`;
  const facts = [page, chunk.heading ?? "", counted(chunk.tokens, "token")].filter((fact) => fact !== "");
  return (
    <li>
      <p class="label">
        <bdi>{facts.join(", ")}</bdi>
      </p>
      {chunk.table_header !== null && <p class="sub">below the header of its table</p>}
      <pre tabIndex={0} aria-label={`Chunk ${chunk.position + 1} of ${title}`}>
        {(chunk.table_header ?? "") + chunk.text}
      </pre>
    </li>
  );
}

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ifAllowed, readCollections } from "../../api/lists";
import { Failure } from "../../ui/action";
import { useFields } from "../../ui/address";
import { counted, instant, wholeNumber } from "../../ui/format";
import { useKeys } from "../../ui/keys";
import { useMay } from "../../ui/may";
import { citedSpan, type Span } from "../../ui/location";
import { Show, useLoad } from "../../ui/load";
import { ReaderList } from "../../ui/readers";
import { DeleteDialog } from "../../ui/receipt";
import { UndoBar, useUndo, type Undoing } from "../../ui/undo";
import { Virtual } from "../../ui/virtual";
import { lastHeading } from "../../window/window-map";
import { MomentLink } from "../streams/moment-link";
import { CorrectPassageDialog, excludeDocument, isCorrectedHere } from "./correct";
import { MarkedText } from "./marked-text";
import { Relations, SupersededLabel, type Relation } from "./relations";

type Document = Schemas["Document"];
type Chunk = Schemas["Chunk"];

interface Read {
  document: Document;
  source: Schemas["Source"];
  collection: string;
  /** Whether the collection has an embedding model. */
  hasVectors: boolean;
  text: string;
  chunks: Chunk[];
  relations: Relation[];
}

async function read(id: string, signal: AbortSignal): Promise<Read> {
  const [document, { text }, chunks, collections, relations] = await Promise.all([
    api.getDocument({ document: id }, { signal }),
    api.getText({ document: id }, { signal }),
    api.listChunks({ document: id }, { signal }),
    readCollections(),
    api.listDocumentRelations({ document: id }, { signal }),
  ]);
  const source = await api.getSource({ source: document.source }, { signal });
  const collection = collections.find((collection) => collection.id === document.collection);
  const named = { collection: collection?.name ?? document.collection, hasVectors: collection?.space != null };
  return { document, source, ...named, text, chunks, relations };
}

export function DocumentView({ id }: { id: string }) {
  const loaded = useLoad((signal) => read(id, signal), [id]);
  const undoing = useUndo(loaded.reload);
  return (
    <>
      <Show of={loaded} what="the document">
        {(content) => <Pages {...content} undoing={undoing} />}
      </Show>
      <UndoBar of={undoing} />
    </>
  );
}

function Pages({ document, source, collection, hasVectors, text, chunks, relations, undoing }: Read & { undoing: Undoing }) {
  const [fields, setFields] = useFields();
  const [, go] = useLocation();
  const [deleting, remove] = useState(false);
  const [isCorrecting, correct] = useState(false);
  const selected = chunks.findIndex((chunk) => String(chunk.id) === fields.get("chunk"));
  const choose = (at: number) => {
    const chunk = chunks[Math.min(Math.max(at, 0), chunks.length - 1)];
    if (chunk !== undefined) setFields({ chunk: String(chunk.id), start: undefined, end: undefined });
  };
  const cited = citedSpan(fields);
  const may = useMay(collection);
  const mayEdit = may("editor", source.id);
  const selectedChunk = chunks[selected];
  useKeys({ j: () => choose(selected + 1), k: () => choose(selected - 1) });
  const back = `/documents?collection=${encodeURIComponent(collection)}`;
  return (
    <>
      <nav class="small crumbs" aria-label="Place">
        <Link class="link" href={back}>
          {collection}
        </Link>
        <Link class="link" href={`${back}&source=${source.id}`}>
          {source.name}
        </Link>
        <span class="dim">{document.key}</span>
      </nav>
      <div class="head">
        <div>
          <h1>{document.title || document.key}</h1>
          <p class="sub">
            {counted(document.characters, "character")} in {counted(chunks.length, "passage")}
            {document.error !== null && <span class="failed"> · {document.error}</span>}
          </p>
          <SupersededLabel document={document.id} relations={relations} />
          {fields.get("chunk") !== null && selectedChunk === undefined && (
            <p class="small failed" role="status">
              The passage in the address is gone: the text was changed.
            </p>
          )}
          {cited !== undefined && <CitedPlace cited={cited} characters={document.characters} />}
        </div>
        <div class="cluster">
          {mayEdit && isCorrectedHere(document) && (
            <button class="btn" type="button" disabled={undoing.busy} onClick={() => excludeDocument(undoing, document)}>
              Exclude from search
            </button>
          )}
          {mayEdit && (
            <button class="btn danger" type="button" onClick={() => remove(true)}>
              Delete …
            </button>
          )}
        </div>
      </div>
      <Failure text={isCorrecting ? "" : undoing.failure} />
      <div class="beside">
        <MarkedText text={text} chunks={chunks} selected={selected} cited={cited} onChoose={choose} />
        <div class="document-side">
          <MomentLink document={document} collection={collection} />
          <Passages chunks={chunks} selected={selected} onChoose={choose}>
            {mayEdit && selectedChunk !== undefined && isCorrectedHere(document) && (
              <button class="btn compact" type="button" onClick={() => correct(true)}>
                Correct …
              </button>
            )}
          </Passages>
          <Relations document={document.id} relations={relations} />
          <Facts document={document} hasVectors={hasVectors} />
          <Readers document={document.id} />
        </div>
      </div>
      {isCorrecting && selectedChunk !== undefined && (
        <CorrectPassageDialog
          document={document}
          text={text}
          chunks={chunks}
          chunk={selectedChunk}
          undoing={undoing}
          onClose={() => correct(false)}
        />
      )}
      {deleting && (
        <DeleteDialog
          title={`Delete ${document.title || document.key}?`}
          preview={{ document: 1, passages: chunks.length, characters: wholeNumber(document.characters) }}
          remove={async (purge) => {
            const receipt = await api.deleteDocument({ document: document.id, purge });
            return { document: document.key, id: document.id, ...receipt };
          }}
          onClose={(deleted) => (deleted ? go(back) : remove(false))}
        />
      )}
    </>
  );
}

/** Which characters are cited, or that the text has none of them any more. */
function CitedPlace({ cited, characters }: { cited: Span; characters: number }) {
  if (cited.start >= characters) {
    return (
      <p class="small failed" role="status">
        The cited place is gone: the text was changed, and ends before character {wholeNumber(cited.start)}.
      </p>
    );
  }
  return (
    <p class="small dim" role="status">
      Marked: characters {wholeNumber(cited.start)} to {wholeNumber(Math.min(cited.end, characters))}
    </p>
  );
}

function Passages({
  chunks,
  selected,
  onChoose,
  children,
}: {
  chunks: readonly Chunk[];
  selected: number;
  onChoose: (at: number) => void;
  /** What can be done with the selected passage. */
  children: ComponentChildren;
}) {
  const most = chunks.reduce((largest, chunk) => Math.max(largest, chunk.tokens), 1);
  return (
    <section class="panel" aria-label="Passages">
      <div class="row">
        <h2>Passages</h2>
        {children}
      </div>
      <div class="passages">
        <Virtual rows={chunks} height={44} selected={selected >= 0 ? selected : undefined} label="Passages in order">
          {(chunk, at) => (
            <button class="passage-row" type="button" aria-current={at === selected} onClick={() => onChoose(at)}>
              <span class="ellipsis">{lastHeading(chunk.heading) || `Passage ${at + 1}`}</span>
              <span class="small num">{counted(chunk.tokens, "token")}</span>
              <span class="meter" style={{ width: `${(chunk.tokens / most) * 100}%` }} />
            </button>
          )}
        </Virtual>
      </div>
    </section>
  );
}

/** Who can see the document, for those who may know it. */
function Readers({ document }: { document: string }) {
  const readers = useLoad((signal) => ifAllowed(api.listReaders({ document }, { signal })), [document]);
  if (readers.data === undefined || readers.data.length === 0) return null;
  return (
    <section class="panel" aria-label="Who can see it">
      <h2>Who can see it</h2>
      <ReaderList readers={readers.data} />
    </section>
  );
}

function Facts({ document, hasVectors }: { document: Document; hasVectors: boolean }) {
  const facts: Record<string, string | number | null> = {
    id: document.id,
    kind: document.kind,
    status: hasVectors ? document.status : "keyword search only",
    author: document.author,
    role: document.role,
    origin: document.origin ?? null,
    trust: document.trust ?? null,
    thread: document.thread,
    added: instant(document.recorded),
    updated: instant(document.updated),
    hash: document.content_hash.slice(0, 16),
  };
  for (const [name, value] of Object.entries(document.metadata)) facts[name] = JSON.stringify(value);
  return (
    <section class="panel" aria-label="Facts">
      <h2>Facts</h2>
      <dl class="receipt after">
        {Object.entries(facts).map(
          ([name, value]) =>
            value !== null && (
              <div key={name}>
                <dt class="dim">{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
    </section>
  );
}

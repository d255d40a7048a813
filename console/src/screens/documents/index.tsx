/** Collections, sources, documents, and the passages of a document on the text that they come from. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { usualOf } from "../../api/lists";
import { Failure, useAction } from "../../ui/action";
import { useFields } from "../../ui/address";
import { Dialog } from "../../ui/controls";
import { counted, day, wholeNumber } from "../../ui/format";
import { asProblem, Show, State, useLoad } from "../../ui/load";
import { pathOf } from "../../ui/location";
import { DeleteDialog } from "../../ui/receipt";
import { useMay } from "../../ui/may";
import { Virtual } from "../../ui/virtual";
import { Add } from "./add";
import { Connections } from "./connections";
import { countDocuments, only } from "./count";
import { DocumentView } from "./document";
import "./documents.css";

type Document = Schemas["Document"];
type Source = Schemas["Source"];
type Page = Schemas["Page"];
type Status = "error" | "unindexable" | undefined;

const statusOf = (text: string | null): Status => (text === "error" || text === "unindexable" ? text : undefined);

const PAGE = 500;

export default function Documents() {
  const [path] = useLocation();
  const id = path.split("/")[2];
  return id === undefined || id === "" ? <Overview /> : <DocumentView key={id} id={decodeURIComponent(id)} />;
}

function Overview() {
  const [fields, setFields] = useFields();
  const collections = useLoad((signal) => api.listCollections({}, { signal }), []);
  return (
    <Show of={collections} what="the collections">
      {(collectionList) => {
        const collection = fields.get("collection") ?? usualOf(collectionList.map((collection) => collection.name));
        if (collection === undefined) {
          return (
            <State title="Nothing is stored yet">
              <p class="sub">This screen shows collections, their sources and documents. Create the first collection:</p>
              <Create onCreated={() => collections.reload()} />
              <p class="sub">
                Or add a folder with <code class="mono">conspectus add FOLDER</code>
              </p>
            </State>
          );
        }
        return (
          <Collection
            key={collection}
            name={collection}
            names={collectionList.map((collection) => collection.name)}
            source={fields.get("source") ?? ""}
            status={statusOf(fields.get("status"))}
            onStatus={(status) => setFields({ status })}
            onCollection={(name) => setFields({ collection: name, source: undefined, status: undefined })}
            onCollections={collections.reload}
            onSource={(source) => setFields({ source })}
          />
        );
      }}
    </Show>
  );
}

function Create({ onCreated }: { onCreated: (name: string) => void }) {
  const [name, setName] = useState("");
  const { act, failure } = useAction();
  const body = { name: name.trim() };
  return (
    <form
      class="cluster creating"
      onSubmit={(event) => {
        event.preventDefault();
        act(() => api.createCollection(body), () => onCreated(body.name));
      }}
    >
      <input
        class="field"
        aria-label="Name of the collection"
        placeholder="notes"
        required
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button class="btn primary" type="submit">
        Create
      </button>
      <Failure text={failure} />
    </form>
  );
}

function Collection({
  name,
  names,
  source,
  onCollection,
  onCollections,
  onSource,
  status,
  onStatus,
}: {
  name: string;
  names: readonly string[];
  /** The id of the chosen source, or nothing. */
  source: string;
  onCollection: (name: string | undefined) => void;
  /** Reads the collections again. */
  onCollections: () => void;
  onSource: (id: string) => void;
  /** Whether only documents are shown that could not be embedded. */
  status: Status;
  onStatus: (status: Status) => void;
}) {
  const sources = useLoad((signal) => api.listSources({ collection: name }, { signal }), [name]);
  const documents = usePages(name, source, status);
  const [adding, add] = useState(false);
  const [deleting, remove] = useState(false);
  const [creating, create] = useState(false);
  const isEmpty = sources.data?.length === 0;
  // What is being added must not vanish with the first source that it brings.
  useEffect(() => {
    if (isEmpty) add(true);
  }, [isEmpty]);
  const selectedSource = sources.data?.find((candidate) => candidate.id === source);
  const may = useMay(name);
  const reload = () => {
    sources.reload();
    documents.reload();
  };
  return (
    <>
      <div class="head">
        <div>
          <h1>
            {documents.count === undefined || sources.data === undefined
              ? name
              : `${counted(documents.count, status === undefined ? "document" : "failed document")} in ${counted(sources.data.length, "source")} of ${name}`}
          </h1>
        </div>
        <div class="cluster">
          {names.length > 1 && (
            <label class="small dim">
              Collection{" "}
              <select class="pick" value={name} onChange={(event) => onCollection(event.currentTarget.value)}>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
          {may(selectedSource === undefined ? "owner" : "manager", source) && (
            <button class="btn danger" type="button" onClick={() => remove(true)}>
              Delete this {selectedSource === undefined ? "collection" : "source"} …
            </button>
          )}
          <button class="btn" type="button" onClick={() => create(true)}>
            New collection …
          </button>
          {may("editor", source) && (
            <button class="btn primary" type="button" aria-expanded={adding} onClick={() => add(!adding)}>
              Add documents
            </button>
          )}
        </div>
      </div>
      {adding && <Add collection={name} onAdded={reload} />}
      <Show of={sources} what="the sources">
        {(sourceList) => (
          <>
            <SourceChips sources={sourceList} selectedSource={source} onChoose={onSource} />
            <label class="small only-failed">
              <input
                type="checkbox"
                checked={status !== undefined}
                onChange={(event) => onStatus(event.currentTarget.checked ? "error" : undefined)}
              />{" "}
              Only those that failed
            </label>
            <Show of={documents} what="the documents">
              {(rows) => (
                <Rows
                  rows={rows}
                  sources={new Map(sourceList.map((source) => [source.id, source.name]))}
                  documents={documents}
                />
              )}
            </Show>
          </>
        )}
      </Show>
      <Connections collection={name} onSynced={reload} />
      {creating && (
        <Dialog title="A new collection" onClose={() => create(false)}>
          <p class="sub">Its documents are searched together; it has sources, grants and an index of its own.</p>
          <Create
            onCreated={(newSource) => {
              create(false);
              onCollections();
              onCollection(newSource);
            }}
          />
        </Dialog>
      )}
      {deleting && selectedSource === undefined && (
        <DeleteDialog
          title={`Delete the collection ${name}?`}
          preview={{ collection: name, sources: sources.data?.length ?? 0, documents: wholeNumber(documents.count ?? 0) }}
          remove={async (purge) => ({ collection: name, ...(await api.deleteCollection({ collection: name, purge })) })}
          onClose={(deleted) => {
            remove(false);
            if (!deleted) return;
            onCollections();
            onCollection(undefined);
          }}
        />
      )}
      {deleting && selectedSource !== undefined && (
        <DeleteDialog
          title={`Delete the source ${selectedSource.name}?`}
          preview={{ source: selectedSource.name, documents: wholeNumber(documents.count ?? 0) }}
          remove={async (purge) => {
            const receipt = await api.deleteSource({ source: selectedSource.id, purge });
            return { source: selectedSource.name, id: selectedSource.id, ...receipt };
          }}
          onClose={(deleted) => {
            remove(false);
            if (!deleted) return;
            onSource("");
            reload();
          }}
        />
      )}
    </>
  );
}

function SourceChips({
  sources,
  selectedSource,
  onChoose,
}: {
  sources: readonly Source[];
  selectedSource: string;
  onChoose: (id: string) => void;
}) {
  return (
    <div class="chips" role="group" aria-label="Sources">
      <button class="chip" type="button" aria-pressed={selectedSource === ""} onClick={() => onChoose("")}>
        All sources
      </button>
      {sources.map((source) => (
        <button
          key={source.id}
          class="chip"
          type="button"
          aria-pressed={selectedSource === source.id}
          onClick={() => onChoose(source.id)}
        >
          <span class="ellipsis">{source.name}</span>
        </button>
      ))}
    </div>
  );
}

function page(collection: string, source: string, status: Status, after: string | null, signal?: AbortSignal) {
  const filter = only(source);
  const query = { limit: PAGE, after, status, filter: filter === undefined ? null : [JSON.stringify(filter)] };
  return api.listDocuments({ collection, ...query }, { signal });
}

/** The first page of the documents and their number; `more` adds the next page to those that are there. */
function usePages(collection: string, source: string, status: Status) {
  const selection = [collection, source, status];
  const first = useLoad((signal) => page(collection, source, status, null, signal), selection);
  const count = useLoad((signal) => countDocuments(collection, source, { status, signal }), selection);
  const [later, add] = useState<{ to: Page | undefined; pages: readonly Page[] }>({ to: undefined, pages: [] });
  const [error, fail] = useState("");
  const requested = useRef<string | null>(null);
  const pages = first.data === undefined ? [] : [first.data, ...(later.to === first.data ? later.pages : [])];
  const next = pages.at(-1)?.next ?? null;
  const more = async () => {
    if (next === null || requested.current === next || first.busy) return;
    requested.current = next;
    try {
      const nextPage = await page(collection, source, status, next);
      add((before) => ({ to: first.data, pages: [...(before.to === first.data ? before.pages : []), nextPage] }));
      fail("");
    } catch (problem) {
      fail(asProblem(problem).message);
    }
    requested.current = null;
  };
  const rows = useMemo(() => pages.flatMap((page) => page.documents), [first.data, pages.length]);
  const reload = () => {
    first.reload();
    count.reload();
  };
  const data = first.data === undefined ? undefined : rows;
  return { ...first, data, reload, count: count.data, more: () => void more(), unread: next !== null, failure: error };
}

function Rows({
  rows,
  sources,
  documents,
}: {
  rows: readonly Document[];
  sources: ReadonlyMap<string, string>;
  documents: ReturnType<typeof usePages>;
}) {
  if (rows.length === 0) return <p class="sub">There are no documents here.</p>;
  return (
    <>
      <Virtual rows={rows} height={innerWidth <= 820 ? 84 : 52} label="Documents" onEnd={documents.more}>
        {(document) => (
          <Link class="document-row" href={pathOf({ document: document.id })}>
            <span class="title">
              <b class="ellipsis">{document.title || document.key}</b>
              <span class="tiny dim ellipsis block-line">
                {document.trust === "untrusted" && <span class="tag">untrusted</span>} {sources.get(document.source)} / {document.key}
              </span>
            </span>
            <span class="small dim">{document.kind}</span>
            <span class={statusOf(document.status) === undefined ? "small dim" : "tag bad"}>
              {document.status === "error" ? "failed" : document.status}
            </span>
            <span class="small num">{counted(document.chunks, "passage")}</span>
            <span class="small num dim">{counted(document.characters, "character")}</span>
            <span class="small num dim">{day(document.updated)}</span>
          </Link>
        )}
      </Virtual>
      <Failure text={documents.failure} />
      {documents.unread && (
        <p class="cluster after">
          <button class="btn" type="button" onClick={documents.more}>
            Load more
          </button>
          <span class="small dim">
            The first {wholeNumber(rows.length)} of {wholeNumber(documents.count ?? rows.length)}; scrolling loads more
          </span>
        </p>
      )}
    </>
  );
}

/** Collections, sources, documents, and the passages of a document on the text that they come from. */
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { forgetLists, readCollections, usualOf } from "../../api/lists";
import { Failure, useAction } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { Dialog } from "../../ui/controls";
import { counted, wholeNumber } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import { useMay } from "../../ui/may";
import { Add } from "./add";
import { Connections } from "./connections";
import { DocumentView } from "./document";
import { DocumentList, useDocuments } from "./list";
import { restrictionsOf, SELECTION, type Selection } from "./selection";
import { SelectionBar } from "./selection-bar";
import "./documents.css";

type Source = Schemas["Source"];

const FIELDS = { collection: textField(), ...SELECTION };
/** The selection of another collection: all of it. The order stays. */
const UNRESTRICTED = { source: "", words: "", status: "", media: "", days: 0 } as const;

function headingOf(name: string, selection: Selection, documents: number, sources: number): string {
  const sourceCount = `${counted(sources, "source")} of ${name}`;
  if (selection.status === "error" || selection.status === "unindexable") {
    return `${counted(documents, "failed document")} in ${sourceCount}`;
  }
  const isRestricted = restrictionsOf(selection).length > 0;
  return `${counted(documents, isRestricted ? "matching document" : "document")} in ${sourceCount}`;
}

export default function Documents() {
  const [path] = useLocation();
  const id = path.split("/")[2];
  return id === undefined || id === "" ? <Overview /> : <DocumentView key={id} id={decodeURIComponent(id)} />;
}

function Overview() {
  const [fields, setFields] = useAddress(FIELDS);
  const collections = useLoad(readCollections, []);
  const { collection: requested, ...selection } = fields;
  const reload = () => {
    forgetLists();
    collections.reload();
  };
  return (
    <Show of={collections} what="the collections">
      {(collectionList) => {
        const collection = requested || usualOf(collectionList.map((collection) => collection.name));
        if (collection === undefined) {
          return (
            <State title="Nothing is stored yet">
              <p class="sub">This screen shows collections, their sources and documents. Create the first collection:</p>
              <Create onCreated={reload} />
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
            selection={selection}
            onSelect={setFields}
            onCollection={(name) => setFields({ ...UNRESTRICTED, collection: name ?? "" })}
            onCollections={reload}
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
  selection,
  onSelect,
  onCollection,
  onCollections,
}: {
  name: string;
  names: readonly string[];
  selection: Selection;
  onSelect: (changes: Partial<Selection>) => void;
  onCollection: (name: string | undefined) => void;
  /** Reads the collections again. */
  onCollections: () => void;
}) {
  const { source } = selection;
  const sources = useLoad((signal) => api.listSources({ collection: name }, { signal }), [name]);
  const documents = useDocuments(name, selection);
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
              : headingOf(name, selection, documents.count, sources.data.length)}
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
            <SourceChips sources={sourceList} selectedSource={source} onChoose={(id) => onSelect({ source: id })} />
            <SelectionBar selection={selection} onSelect={onSelect} />
            <Show of={documents} what="the documents">
              {(rows) => (
                <DocumentList
                  rows={rows}
                  sources={new Map(sourceList.map((source) => [source.id, source.name]))}
                  documents={documents}
                  isRestricted={restrictionsOf(selection).length > 0}
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
            onSelect({ source: "" });
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

/** Collections, sources, documents, and the passages of a document on the text that they come from. */
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, take, type Schemas } from "../../api/client";
import { useFields } from "../../ui/address";
import { counted, day, whole } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { Virtual } from "../../ui/virtual";
import { Add } from "./add";
import { Connections } from "./connections";
import { DocumentView } from "./document";
import "./documents.css";

type Document = Schemas["Document"];
type Source = Schemas["Source"];

const PAGE = 500;

export default function Documents() {
  const [path] = useLocation();
  const id = path.split("/")[2];
  return id === undefined || id === "" ? <Overview /> : <DocumentView key={id} id={decodeURIComponent(id)} />;
}

function Overview() {
  const [fields, setFields] = useFields();
  const collections = useLoad((signal) => take(api.GET("/api/v1/collections", { signal })), []);
  return (
    <Show of={collections} what="the collections">
      {(found) => {
        const collection = fields.get("collection") ?? found[0]?.name;
        if (collection === undefined) {
          return (
            <State title="Nothing is stored yet">
              <p class="sub">This screen shows collections, their sources and documents. Add the first with:</p>
              <p class="mono">conspectus add FOLDER</p>
            </State>
          );
        }
        return (
          <Collection
            key={collection}
            name={collection}
            names={found.map((each) => each.name)}
            source={fields.get("source") ?? ""}
            onCollection={(name) => setFields({ collection: name, source: undefined })}
            onSource={(source) => setFields({ source })}
          />
        );
      }}
    </Show>
  );
}

function Collection({
  name,
  names,
  source,
  onCollection,
  onSource,
}: {
  name: string;
  names: readonly string[];
  /** The id of the chosen source, or nothing. */
  source: string;
  onCollection: (name: string) => void;
  onSource: (id: string) => void;
}) {
  const params = { path: { collection: name } };
  const sources = useLoad(
    (signal) => take(api.GET("/api/v1/collections/{collection}/sources", { params, signal })),
    [name],
  );
  const documents = usePages(name, source);
  const [adding, add] = useState(false);
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
              : `${counted(documents.count, "document")} in ${counted(sources.data.length, "source")} of ${name}`}
          </h1>
        </div>
        <div class="cluster">
          {names.length > 1 && (
            <label class="small dim">
              Collection{" "}
              <select class="pick" value={name} onChange={(event) => onCollection(event.currentTarget.value)}>
                {names.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          )}
          <button class="btn primary" type="button" aria-expanded={adding} onClick={() => add(!adding)}>
            Add documents
          </button>
        </div>
      </div>
      {adding && <Add collection={name} onAdded={reload} />}
      <Show of={sources} what="the sources">
        {(found) => (
          <>
            <SourceChips sources={found} chosen={source} onChoose={onSource} />
            <Show of={documents} what="the documents">
              {(rows) => (
                <Rows
                  rows={rows}
                  sources={new Map(found.map((each) => [each.id, each.name]))}
                  more={documents.more}
                  count={documents.count ?? rows.length}
                />
              )}
            </Show>
          </>
        )}
      </Show>
      <Connections collection={name} onSynced={reload} />
    </>
  );
}

function SourceChips({
  sources,
  chosen,
  onChoose,
}: {
  sources: readonly Source[];
  chosen: string;
  onChoose: (id: string) => void;
}) {
  return (
    <div class="chips" role="group" aria-label="Sources">
      <button class="chip" type="button" aria-pressed={chosen === ""} onClick={() => onChoose("")}>
        All sources
      </button>
      {sources.map((each) => (
        <button
          key={each.id}
          class="chip"
          type="button"
          aria-pressed={chosen === each.id}
          onClick={() => onChoose(each.id)}
        >
          <span class="ellipsis">{each.name}</span>
        </button>
      ))}
    </div>
  );
}

/** Documents page by page, with their number. */
function usePages(collection: string, source: string) {
  const [pages, setPages] = useState(1);
  const filter = source === "" ? undefined : { field: "source", eq: source };
  const loaded = useLoad(
    async (signal) => {
      const rows: Document[] = [];
      let after: string | null = null;
      for (let page = 0; page < pages; page += 1) {
        const query = { limit: PAGE, after, filter: filter === undefined ? null : [JSON.stringify(filter)] };
        const found: Schemas["Page"] = await take(
          api.GET("/api/v1/collections/{collection}/documents", {
            params: { path: { collection }, query },
            signal,
          }),
        );
        rows.push(...found.documents);
        after = found.next;
        if (after === null) break;
      }
      return rows;
    },
    [collection, source, pages],
  );
  const count = useLoad(
    (signal) =>
      take(
        api.POST("/api/v1/collections/{collection}/documents/count", {
          params: { path: { collection } },
          body: { filter: filter ?? null },
          signal,
        }),
      ),
    [collection, source],
  );
  const reload = () => {
    loaded.reload();
    count.reload();
  };
  return { ...loaded, reload, count: count.data?.count, more: () => setPages(pages + 1) };
}

function Rows({
  rows,
  sources,
  count,
  more,
}: {
  rows: readonly Document[];
  sources: ReadonlyMap<string, string>;
  count: number;
  more: () => void;
}) {
  if (rows.length === 0) return <p class="sub">There are no documents here.</p>;
  return (
    <>
      <Virtual rows={rows} height={innerWidth <= 820 ? 84 : 52} label="Documents">
        {(each) => (
          <Link class="document-row" href={`/documents/${encodeURIComponent(each.id)}`}>
            <span class="title">
              <b class="ellipsis">{each.title || each.key}</b>
              <span class="tiny dim ellipsis block-line">
                {sources.get(each.source)} / {each.key}
              </span>
            </span>
            <span class="small dim">{each.kind}</span>
            <span class={each.status === "error" ? "tag bad" : "small dim"}>
              {each.status === "error" ? "failed" : each.status}
            </span>
            <span class="small num">{counted(each.chunks, "passage")}</span>
            <span class="small num dim">{counted(each.characters, "character")}</span>
            <span class="small num dim">{day(each.updated)}</span>
          </Link>
        )}
      </Virtual>
      {rows.length < count && (
        <p class="cluster after">
          <button class="btn" type="button" onClick={more}>
            Load more
          </button>
          <span class="small dim">
            {whole(rows.length)} of {whole(count)}
          </span>
        </p>
      )}
    </>
  );
}

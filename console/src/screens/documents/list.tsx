/** The list of the selected documents, read page by page. */
import { useMemo } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { Failure } from "../../ui/action";
import { counted, day, wholeNumber } from "../../ui/format";
import { useLoad } from "../../ui/load";
import { pathOf } from "../../ui/location";
import { Name } from "../../ui/name";
import { usePages, type Paged } from "../../ui/pages";
import { useIsNarrow } from "../../ui/size";
import { Virtual } from "../../ui/virtual";
import { filterOf, statusOf, type Selection } from "./selection";

type Document = Schemas["Document"];
const PAGE = 500;

interface Listed extends Paged<Document> {
  /** The number of all documents of the selection. */
  count: number | undefined;
}

/** The documents of a selection in their order, and their number. */
export function useDocuments(collection: string, selection: Selection): Listed {
  const { source, words, status, media, days, sort } = selection;
  const restrictions = [collection, source, words, status, media, days];
  // A time of the selection is the same for all of its pages.
  const filter = useMemo(() => filterOf(selection, Date.now()), restrictions);
  const listed = usePages(
    async (after, signal) => {
      const query = { limit: PAGE, after, sort, status: statusOf(selection) };
      const conditions = filter === undefined ? null : [JSON.stringify(filter)];
      const page = await api.listDocuments({ collection, ...query, filter: conditions }, { signal });
      return { rows: page.documents, next: page.next };
    },
    [...restrictions, sort],
  );
  const counting = useLoad(async (signal) => {
    const body = { collection, status: statusOf(selection), filter: filter ?? null };
    return (await api.countDocuments(body, { signal })).count;
  }, restrictions);
  const reload = () => {
    listed.reload();
    counting.reload();
  };
  return { ...listed, reload, count: counting.data };
}

export function DocumentList({
  rows,
  sources,
  documents,
  isRestricted,
}: {
  rows: readonly Document[];
  sources: ReadonlyMap<string, string>;
  documents: Listed;
  /** Whether the selection leaves out documents. */
  isRestricted: boolean;
}) {
  const isNarrow = useIsNarrow();
  if (rows.length === 0) return <p class="sub">{isRestricted ? "No document matches." : "There are no documents here."}</p>;
  return (
    <>
      <Virtual rows={rows} height={isNarrow ? 84 : 52} label="Documents" onEnd={documents.more}>
        {(document) => (
          <Link class="document-row" href={pathOf({ document: document.id })}>
            <Name document={{ ...document, source: sources.get(document.source) }}>
              {document.trust === "untrusted" && <span class="tag">untrusted</span>}
            </Name>
            <span class="small dim">{document.kind}</span>
            <span class={document.status === "error" || document.status === "unindexable" ? "tag bad" : "small dim"}>
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

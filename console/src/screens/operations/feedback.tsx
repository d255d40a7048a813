import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api } from "../../api/client";
import { readPages } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { counted, instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { pathOf } from "../../ui/location";
import { OfCollection, principals } from "./collection";

const PAGE = 100;

/** What people said of passages, which moves similar questions for everyone. */
export function Feedback() {
  return <OfCollection>{(collection) => <Judgments key={collection} collection={collection} />}</OfCollection>;
}

function Judgments({ collection }: { collection: string }) {
  const [count, setCount] = useState(PAGE);
  const { act, busy, failure } = useAction();
  const loaded = useLoad(
    async (signal) => {
      const pages = await readPages(count, PAGE, async (limit, after) => {
        const page = await api.listFeedback({ collection, limit, after }, { signal });
        return { rows: page.feedback, next: page.next };
      });
      return { ...pages, titles: await titles(collection, pages.rows, signal), users: await principals(signal) };
    },
    [count],
  );
  return (
    <Show of={loaded} what="the feedback">
      {({ rows, next, titles, users }) => (
        <>
          <h1 class="after">
            {rows.length === 0
              ? `No feedback on ${collection} yet`
              : `${next === null ? "" : "The newest "}${counted(rows.length, "judgment")} on passages of ${collection}`}
          </h1>
          <p class="sub">
            “Used” raises a passage for similar questions, “wrong” lowers it, for everyone. Give feedback in the{" "}
            <Link class="link" href={`/playground?collection=${encodeURIComponent(collection)}`}>
              Playground
            </Link>
            ; the part “feedback” of a score shows what follows from it.
          </p>
          <Failure text={failure} />
          <ul class="list after" aria-label="Feedback">
            {rows.map((row) => (
              <li key={row.id} class="feedback-row">
                <span class={row.used ? "status lit" : "status"}>
                  <span class={row.used ? "glyph included" : "glyph no_role"} aria-hidden="true" />
                  {row.used ? "Used" : "Wrong"}
                </span>
                <span class="operations-title">
                  <b class="block-line">{row.query}</b>
                  <Link class="link small" href={pathOf(row)}>
                    {titles.get(row.document) ?? "Open the passage"}
                  </Link>
                </span>
                <span class="small dim">
                  {row.user === person.value?.id ? "you" : (users.get(row.user) ?? row.user)}, {instant(row.created)}
                </span>
                <button
                  class="btn compact"
                  type="button"
                  disabled={busy}
                  aria-label={`Revoke: ${row.used ? "used" : "wrong"} for ${row.query}`}
                  onClick={() => act(() => api.revokeFeedback({ feedback: row.id }), loaded.reload)}
                >
                  Revoke
                </button>
              </li>
            ))}
          </ul>
          {next !== null && (
            <p class="cluster after">
              <button class="btn" type="button" onClick={() => setCount(count + PAGE)}>
                Load older feedback
              </button>
            </p>
          )}
        </>
      )}
    </Show>
  );
}

/** Titles of the documents that are judged. */
async function titles(
  collection: string,
  rows: readonly { document: string }[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const ids = [...new Set(rows.map((row) => row.document))];
  if (ids.length === 0) return new Map();
  const filter = [JSON.stringify({ field: "document", in: ids })];
  const { documents } = await api.listDocuments({ collection, filter, limit: ids.length }, { signal });
  return new Map(documents.map((document) => [document.id, document.title || document.key]));
}

import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api } from "../../api/client";
import { readPages } from "../../api/lists";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { counted, instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { OfCollection, principals } from "./collection";

const PAGE = 100;

/** What people said of passages, which moves similar questions for everyone. */
export function Feedback() {
  return <OfCollection>{(collection) => <Judgments key={collection} collection={collection} />}</OfCollection>;
}

function Judgments({ collection }: { collection: string }) {
  const [wanted, want] = useState(PAGE);
  const { act, busy, failure } = useAction();
  const loaded = useLoad(
    async (signal) => {
      const given = await readPages(wanted, PAGE, async (limit, after) => {
        const page = await api.listFeedback({ collection, limit, after }, { signal });
        return { rows: page.feedback, next: page.next };
      });
      return { ...given, titles: await titles(collection, given.rows, signal), users: await principals(signal) };
    },
    [wanted],
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
            {rows.map((each) => (
              <li key={each.id} class="feedback-row">
                <span class={each.used ? "status lit" : "status"}>
                  <span class={each.used ? "glyph included" : "glyph no_role"} aria-hidden="true" />
                  {each.used ? "Used" : "Wrong"}
                </span>
                <span class="operations-title">
                  <b class="block-line">{each.query}</b>
                  <Link class="link small" href={`/documents/${encodeURIComponent(each.document)}?chunk=${each.chunk}`}>
                    {titles.get(each.document) ?? "Open the passage"}
                  </Link>
                </span>
                <span class="small dim">
                  {each.user === person.value?.id ? "you" : (users.get(each.user) ?? each.user)}, {instant(each.created)}
                </span>
                <button
                  class="btn compact"
                  type="button"
                  disabled={busy}
                  aria-label={`Revoke: ${each.used ? "used" : "wrong"} for ${each.query}`}
                  onClick={() => act(() => api.revokeFeedback({ feedback: each.id }), loaded.reload)}
                >
                  Revoke
                </button>
              </li>
            ))}
          </ul>
          {next !== null && (
            <p class="cluster after">
              <button class="btn" type="button" onClick={() => want(wanted + PAGE)}>
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
  const ids = [...new Set(rows.map((each) => each.document))];
  if (ids.length === 0) return new Map();
  const filter = [JSON.stringify({ field: "document", in: ids })];
  const { documents } = await api.listDocuments({ collection, filter, limit: ids.length }, { signal });
  return new Map(documents.map((each) => [each.id, each.title || each.key]));
}

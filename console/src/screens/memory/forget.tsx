import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { day, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import type { Memory, Receipt, Scope } from "./lanes";

/** What is kept as a receipt of a deletion. */
export const figures = ({ memories, versions, chunks, vectors, edges, purged, ids }: Receipt) => ({
  memories,
  versions,
  chunks,
  vectors,
  edges,
  purged,
  ids: ids.join(", "),
});

/** What a rule by age would delete; deletes it on request. */
export function RetentionPreview({ scope, onForgotten }: { scope: Scope; onForgotten: (receipt: Receipt) => void }) {
  const [before, setBefore] = useState(() => new Date(Date.now() - 90 * 86_400_000).toISOString().slice(0, 10));
  const [deleting, remove] = useState(false);
  const [receipt, keep] = useState<Receipt>();
  const body = { ...scope, before: `${before}T00:00:00Z` };
  const forget = (options: object, signal?: AbortSignal) =>
    api.forget({ ...body, ...options }, { signal });
  const preview = useLoad((signal) => (before === "" ? undefined : forget({ dry_run: true }, signal)), [
    before,
    JSON.stringify(scope),
  ]);
  return (
    <section class="panel">
      <h2>What a rule would delete</h2>
      <label class="small dim cluster after">
        Known before
        <input
          class="field date"
          type="date"
          value={before}
          onChange={(event) => setBefore(event.currentTarget.value)}
        />
        A preview: nothing is deleted. Pinned notes stay.
      </label>
      <Show of={preview} what="the preview">
        {(effects) => (
          <>
            <div class="figures after">
              {(["memories", "versions", "chunks", "vectors", "edges"] as const).map((name) => (
                <p key={name} class="figure">
                  {wholeNumber(effects[name])}
                  <span>{name}</span>
                </p>
              ))}
            </div>
            {effects.memories > 0 && (
              <p class="cluster after">
                <button class="btn danger" type="button" onClick={() => remove(true)}>
                  Forget them …
                </button>
              </p>
            )}
            {deleting && (
              <DeleteDialog
                title={`Forget what was known before ${day(before)}?`}
                preview={{ memories: effects.memories, versions: effects.versions, edges: effects.edges }}
                remove={async (purge) => {
                  const forgotten = await forget({ purge });
                  keep(forgotten);
                  return figures(forgotten);
                }}
                onClose={(deleted) => {
                  remove(false);
                  if (deleted && receipt !== undefined) onForgotten(receipt);
                }}
              />
            )}
          </>
        )}
      </Show>
    </section>
  );
}

/** Forgets one memory, and shows the receipt. */
export function ForgetDialog({
  memory,
  scope,
  onClose,
}: {
  memory: Memory;
  scope: Scope;
  /** Gets the receipt where the memory was forgotten. */
  onClose: (receipt: Receipt | undefined) => void;
}) {
  const [receipt, keep] = useState<Receipt>();
  return (
    <DeleteDialog
      title="Forget this memory?"
      preview={{ memory: memory.text, "its versions": "all", "its facts in the graph": "all" }}
      remove={async (purge) => {
        const forgotten = await api.forgetMemory({ memory: memory.id, ...scope, purge });
        keep(forgotten);
        return figures(forgotten);
      }}
      onClose={() => onClose(receipt)}
    />
  );
}

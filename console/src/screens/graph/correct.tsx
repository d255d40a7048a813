/** Corrections of edges: type, weight, validity, and deletion; each can be undone. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure } from "../../ui/action";
import { Dialog, TimeField } from "../../ui/controls";
import { instantOf, localTime } from "../../ui/format";
import type { Undoing } from "../../ui/undo";
import type { Edge, GraphCriteria } from "./state";

type StoredEdge = Schemas["Edge"];
type GraphAddress = Pick<GraphCriteria, "collection" | "graph">;

const PAGE = 1_000;

/** The whole edge, of which the picture has a part. */
async function readEdge({ collection, graph }: GraphAddress, { id, source }: Edge): Promise<StoredEdge> {
  let after: string | null = null;
  do {
    const page: Schemas["EdgePage"] = await api.listEdges({ graph, collection, node: source, limit: PAGE, after });
    const edge = page.edges.find((candidate) => candidate.id === id);
    if (edge !== undefined) return edge;
    after = page.next;
  } while (after !== null);
  throw new Error("The edge was changed or deleted meanwhile.");
}

const newEdgeOf = ({ source, target, type, weight, properties, valid_from, valid_until, evidence, origin, trust }: StoredEdge): Schemas["NewEdge"] => ({
  source,
  target,
  type,
  weight,
  properties,
  valid_from,
  valid_until,
  evidence,
  origin: origin ?? null,
  trust: trust === "quarantined" ? null : (trust ?? null),
});

interface Draft {
  type: string;
  weight: string;
  from: string;
  until: string;
}

const draftOf = ({ type, weight, valid_from: from, valid_until: until }: Edge): Draft => ({
  type,
  weight: String(weight),
  from: from === null ? "" : localTime(from),
  until: until === null ? "" : localTime(until),
});

/** An edge with its fields to be changed. Type and beginning are part of its identity: it is then written anew. */
export function CorrectEdgeDialog({
  edge,
  address,
  undoing,
  onClose,
}: {
  edge: Edge;
  address: GraphAddress;
  undoing: Undoing;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(edge));
  const set = (fields: Partial<Draft>) => setDraft({ ...draft, ...fields });
  const before = draftOf(edge);
  const differs = (name: keyof Draft) => before[name] !== draft[name];
  const isUnchanged = !(["type", "weight", "from", "until"] as const).some(differs);
  const add = (added: Schemas["NewEdge"]) => api.addEdges({ ...address, edges: [added] });
  const remove = (id: string) => api.deleteEdges({ ...address, edges: [id] });
  const save = async () => {
    const stored = await readEdge(address, edge);
    const changed: Schemas["NewEdge"] = { ...newEdgeOf(stored), type: draft.type.trim(), weight: Number(draft.weight) };
    if (differs("from")) changed.valid_from = instantOf(draft.from);
    if (differs("until")) changed.valid_until = instantOf(draft.until);
    const [written] = await add(changed);
    const isAnother = written !== undefined && written.id !== edge.id;
    if (isAnother) await remove(edge.id);
    return async () => {
      await add(newEdgeOf(stored));
      if (isAnother) await remove(written.id);
    };
  };
  const removeEdge = async () => {
    const stored = await readEdge(address, edge);
    await remove(edge.id);
    return () => add(newEdgeOf(stored));
  };
  const closeIf = (done: Promise<boolean>) => void done.then((isDone) => isDone && onClose());
  return (
    <Dialog title="Correct this edge" busy={undoing.busy} onClose={onClose}>
      <form
        class="correct-form"
        onSubmit={(event) => {
          event.preventDefault();
          closeIf(undoing.apply("The edge is corrected.", save));
        }}
      >
        <div class="correct-fact">
          <label>
            <span class="label">Type</span>
            <input class="field" required value={draft.type} onInput={(event) => set({ type: event.currentTarget.value })} />
          </label>
          <label>
            <span class="label">Weight</span>
            <input
              class="field"
              type="number"
              required
              min="0.001"
              max="1"
              step="any"
              value={draft.weight}
              onInput={(event) => set({ weight: event.currentTarget.value })}
            />
          </label>
        </div>
        <div class="correct-times">
          <TimeField label="Holds from" time={draft.from} onTime={(from) => set({ from })} />
          <TimeField label="Holds until" time={draft.until} onTime={(until) => set({ until })}>
            <button class="btn compact" type="button" onClick={() => set({ until: localTime(new Date()) })}>
              Now
            </button>
          </TimeField>
        </div>
        <Failure text={undoing.failure} />
        <p class="cluster">
          <button class="btn primary" type="submit" disabled={isUnchanged || undoing.busy}>
            Save
          </button>
          <button
            class="btn danger"
            type="button"
            disabled={undoing.busy}
            onClick={() => closeIf(undoing.apply("The edge is deleted.", removeEdge))}
          >
            Delete edge
          </button>
        </p>
      </form>
    </Dialog>
  );
}

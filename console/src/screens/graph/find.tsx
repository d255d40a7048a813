import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { Failure } from "../../ui/action";
import { useLoad } from "../../ui/load";
import type { GraphCriteria } from "./state";

/** Finds nodes by words of their names; the first of several is not chosen for the reader. */
export function Find({
  criteria,
  selectedName,
  onNode,
  onClear,
}: {
  criteria: GraphCriteria;
  /** The name of the node that is shown. */
  selectedName: string | undefined;
  onNode: (id: string) => void;
  onClear: () => void;
}) {
  const { graph, collection } = criteria;
  const [draft, write] = useState("");
  const [query, ask] = useState("");
  const hits = useLoad(
    async (signal) => {
      if (query === "") return null;
      return api.searchNodes({ graph, collection, query, limit: 12 }, { signal });
    },
    [graph, collection, query],
  );
  const choose = (id: string) => {
    onNode(id);
    ask("");
    write("");
  };
  return (
    <div class="graph-find">
      <form
        class="cluster"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          ask(draft.trim());
        }}
      >
        <input
          class="field"
          type="search"
          aria-label="Find a node"
          placeholder="Find a node by its name"
          value={draft}
          onInput={(event) => write(event.currentTarget.value)}
        />
        <button class="btn primary" type="submit">
          Find
        </button>
        {selectedName !== undefined && (
          <button class="btn" type="button" onClick={onClear}>
            Show the whole graph
          </button>
        )}
      </form>
      <Failure text={hits.error?.message ?? ""} />
      {query !== "" && Array.isArray(hits.data) && (
        <div class="chips" role="group" aria-label="Nodes found">
          {hits.data.length === 0 && <span class="small dim">No node has these words in its name.</span>}
          {hits.data.map(({ node }) => (
            <button key={node.id} class="chip" type="button" onClick={() => choose(node.id)}>
              <b>{node.name}</b> {node.type}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

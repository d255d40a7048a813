/** What the picture shows, as lists: the neighbors with the way to each, the edges, merges and splits. */
import { api } from "../../api/client";
import { counted, day, instant, score } from "../../ui/format";
import { Failure, useAction } from "../../ui/action";
import { Show, useLoad } from "../../ui/load";
import { useMay } from "../../ui/may";
import { Virtual } from "../../ui/virtual";
import { ended, type GraphCriteria, type Edge, type Neighbor, type Subgraph } from "./state";

export function Neighbors({
  near,
  hit,
  onHit,
}: {
  near: readonly Neighbor[];
  hit: Neighbor | undefined;
  onHit: (id: string) => void;
}) {
  const at = hit === undefined ? undefined : near.indexOf(hit);
  return (
    <div class="graph-list">
      <Virtual rows={near} height={52} selected={at} label="Neighbors">
        {(neighbor) => (
          <button
            class="graph-row"
            type="button"
            aria-current={neighbor === hit}
            onClick={() => onHit(neighbor === hit ? "" : neighbor.node.id)}
          >
            <b class="ellipsis">{neighbor.node.name}</b>
            <span class="small num">{score(neighbor.decay)}</span>
            <span class="tiny dim ellipsis">{neighbor.node.type}</span>
            <span class="tiny dim num">{counted(neighbor.hop, "hop")}</span>
          </button>
        )}
      </Virtual>
    </div>
  );
}

/** The way by which a node was reached, step by step. */
export function Way({ hit, names, onNode }: { hit: Neighbor; names: ReadonlyMap<string, string>; onNode: () => void }) {
  return (
    <div class="graph-way" role="status">
      <p>
        <b>{hit.node.name}</b> is reached in {counted(hit.hop, "hop")}; the weights multiply to <b>{score(hit.decay)}</b>.
      </p>
      <ol>
        {hit.steps.map((step, at) => (
          <li key={at} class="small">
            {names.get(step.source) ?? step.source} <span class="dim">{step.backwards ? `← ${step.type}` : `${step.type} →`}</span>{" "}
            {names.get(step.target) ?? step.target} <span class="dim">{score(step.weight)}</span>
          </li>
        ))}
      </ol>
      <button class="link small" type="button" onClick={onNode}>
        Go on from here
      </button>
    </div>
  );
}

export function period({ valid_from: from, valid_until: until }: Edge): string {
  if (from === null && until === null) return "";
  return until === null ? `since ${day(from!)}` : `${from === null ? "" : day(from)} – ${day(until)}`;
}

export function Edges({
  subgraph,
  names,
  onNode,
  onEdge,
}: {
  subgraph: Subgraph;
  names: ReadonlyMap<string, string>;
  onNode: (id: string) => void;
  /** Shows what states an edge, and corrects it. */
  onEdge: (id: string) => void;
}) {
  const end = (id: string) => (
    <button class="link ellipsis" type="button" onClick={() => onNode(id)}>
      {names.get(id) ?? id}
    </button>
  );
  return (
    <section>
      <h2 class="graph-edges">{counted(subgraph.edges.length, "edge")}</h2>
      <Virtual rows={subgraph.edges} height={innerWidth <= 820 ? 92 : 44} label="Edges">
        {(edge) => (
          <div class="graph-edge">
            {end(edge.source)}
            <span class="small dim ellipsis">{edge.type} →</span>
            {end(edge.target)}
            <span class="small num">{score(edge.weight)}</span>
            <span class="small dim ellipsis">
              {period(edge)} {ended(edge) && <span class="tag">ended</span>}{" "}
              <button
                class="link"
                type="button"
                aria-label={`${edge.evidence === null ? "Details" : "Sentence"} of ${edge.type}`}
                onClick={() => onEdge(edge.id)}
              >
                {edge.evidence === null ? "details" : "sentence"}
              </button>
            </span>
          </div>
        )}
      </Virtual>
    </section>
  );
}

export function Merges({ criteria, onUndone }: { criteria: GraphCriteria; onUndone: () => void }) {
  const { graph, collection, node } = criteria;
  const events = useLoad(
    (signal) => api.listMerges({ graph, collection, node: node || null }, { signal }),
    [graph, collection, node],
  );
  const { act, failure } = useAction();
  const may = useMay(collection);
  const undo = (merge: number) => {
    const undone = () => (events.reload(), onUndone());
    act(() => api.undoMerge({ graph, collection, merge, reason: "console" }), undone);
  };
  return (
    <section aria-label="Merges and splits">
      <h2>Merges and splits</h2>
      <Failure text={failure} />
      <Show of={events} what="the merges">
        {(merges) =>
          merges.length === 0 ? (
            <p class="sub">No nodes of {node === "" ? "this graph" : "this name"} were merged or split.</p>
          ) : (
            <ul class="list after">
              {[...merges].reverse().map((merge) => {
                const undone = merges.some(
                  (later) => later.kind === "split" && later.number > merge.number && later.after.join() === merge.before.join(),
                );
                return (
                  <li key={merge.number} class="row">
                    <span class="graph-event">
                      <b>{merge.before.join(", ")}</b> {merge.kind === "merge" ? "merged into" : "split into"}{" "}
                      <b>{merge.after.join(", ")}</b>
                      <span class="block-line small dim">
                        {instant(merge.at)} by {merge.by}
                        {merge.reason !== "" && `: ${merge.reason}`}
                      </span>
                    </span>
                    {merge.kind === "merge" &&
                      (undone ? (
                        <span class="tag">undone</span>
                      ) : (
                        may("editor", graph) && (
                          <button class="btn compact" type="button" onClick={() => undo(merge.number)}>
                            Undo
                          </button>
                        )
                      ))}
                  </li>
                );
              })}
            </ul>
          )
        }
      </Show>
    </section>
  );
}

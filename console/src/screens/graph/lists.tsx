/** What the picture shows, as lists: the neighbors with the way to each, the edges, merges and splits. */
import { Link } from "wouter-preact";
import { api } from "../../api/client";
import { counted, day, instant, score } from "../../ui/format";
import { Failure, useAction } from "../../ui/action";
import { Show, useLoad } from "../../ui/load";
import { Virtual } from "../../ui/virtual";
import { ended, type Asked, type Edge, type Neighbor, type Shown } from "./state";

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
        {(each) => (
          <button
            class="graph-row"
            type="button"
            aria-current={each === hit}
            onClick={() => onHit(each === hit ? "" : each.node.id)}
          >
            <b class="ellipsis">{each.node.name}</b>
            <span class="small num">{score(each.decay)}</span>
            <span class="tiny dim ellipsis">{each.node.type}</span>
            <span class="tiny dim num">{counted(each.hop, "hop")}</span>
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

function period({ valid_from: from, valid_until: until }: Edge): string {
  if (from === null && until === null) return "";
  return until === null ? `since ${day(from!)}` : `${from === null ? "" : day(from)} – ${day(until)}`;
}

export function Edges({
  shown,
  names,
  onNode,
}: {
  shown: Shown;
  names: ReadonlyMap<string, string>;
  onNode: (id: string) => void;
}) {
  const end = (id: string) => (
    <button class="link ellipsis" type="button" onClick={() => onNode(id)}>
      {names.get(id) ?? id}
    </button>
  );
  return (
    <section>
      <h2 class="graph-edges">{counted(shown.edges.length, "edge")}</h2>
      <Virtual rows={shown.edges} height={innerWidth <= 820 ? 92 : 44} label="Edges">
        {(each) => (
          <div class="graph-edge">
            {end(each.source)}
            <span class="small dim ellipsis">{each.type} →</span>
            {end(each.target)}
            <span class="small num">{score(each.weight)}</span>
            <span class="small dim ellipsis">
              {period(each)} {ended(each) && <span class="tag">ended</span>}{" "}
              {each.evidence !== null && <Link class="link" href={`/documents/${encodeURIComponent(each.evidence)}`}>evidence</Link>}
            </span>
          </div>
        )}
      </Virtual>
    </section>
  );
}

export function Merges({ asked, onUndone }: { asked: Asked; onUndone: () => void }) {
  const { graph, collection, node } = asked;
  const events = useLoad(
    (signal) => api.listMerges({ graph, collection, node: node || null }, { signal }),
    [graph, collection, node],
  );
  const { act, failure } = useAction();
  const undo = (merge: number) => {
    const undone = () => (events.reload(), onUndone());
    act(() => api.undoMerge({ graph, collection, merge, reason: "console" }), undone);
  };
  return (
    <section aria-label="Merges and splits">
      <h2>Merges and splits</h2>
      <Failure text={failure} />
      <Show of={events} what="the merges">
        {(found) =>
          found.length === 0 ? (
            <p class="sub">No nodes of {node === "" ? "this graph" : "this name"} were merged or split.</p>
          ) : (
            <ul class="list after">
              {[...found].reverse().map((each) => {
                const undone = found.some(
                  (later) => later.kind === "split" && later.number > each.number && later.after.join() === each.before.join(),
                );
                return (
                  <li key={each.number} class="row">
                    <span class="graph-event">
                      <b>{each.before.join(", ")}</b> {each.kind === "merge" ? "merged into" : "split into"}{" "}
                      <b>{each.after.join(", ")}</b>
                      <span class="block-line small dim">
                        {instant(each.at)} by {each.by}
                        {each.reason !== "" && `: ${each.reason}`}
                      </span>
                    </span>
                    {each.kind === "merge" &&
                      (undone ? (
                        <span class="tag">undone</span>
                      ) : (
                        <button class="btn compact" type="button" onClick={() => undo(each.number)}>
                          Undo
                        </button>
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

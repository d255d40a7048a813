/** The facts of memories as a map: subjects and objects, with an edge for each fact. */
import { useMemo, useState } from "preact/hooks";
import { instant } from "../../ui/format";
import { LocationLink } from "../../ui/location";
import { UndoBar } from "../../ui/undo";
import { legendOf } from "../graph/appearance";
import { Picture } from "../graph/picture";
import { ended, type Edge, type Node, type Subgraph } from "../graph/state";
import "../graph/graph.css";
import { CorrectDialog, useCorrections } from "./correct";
import type { Memory, Scope } from "./lanes";

const laterOf = (one: string, other: string | null): string =>
  other !== null && Date.parse(other) > Date.parse(one) ? other : one;

/** The graph of facts. An edge begins when its fact was known here and held in the world. */
export function factsOf(memories: readonly Memory[]): Subgraph {
  const nodes = new Map<string, Node>();
  const edges: Edge[] = [];
  const subjects = new Set(memories.map((memory) => memory.fact?.subject));
  for (const { id, fact, known_from, valid_from: from, valid_until } of memories) {
    if (fact === null) continue;
    for (const name of [fact.subject, fact.object]) {
      nodes.set(name, { id: name, name, type: subjects.has(name) ? "subject" : "object", valid_from: null, valid_until: null });
    }
    const valid_from = laterOf(known_from, from);
    edges.push({ id, source: fact.subject, target: fact.object, type: fact.predicate, weight: 1, valid_from, valid_until, evidence: id });
  }
  return { nodes: [...nodes.values()], edges };
}

export function FactMap({
  memories,
  at,
  now,
  scope,
  onChanged,
}: {
  memories: readonly Memory[];
  /** Milliseconds, as `now`. */
  at: number;
  now: number;
  scope: Scope;
  onChanged: () => void;
}) {
  const [selectedId, select] = useState("");
  const corrections = useCorrections(scope, onChanged);
  const versions = memories.map((memory) => memory.document.fingerprint).join();
  const subgraph = useMemo(() => factsOf(memories), [versions]);
  const legend = useMemo(() => legendOf(subgraph.nodes), [subgraph]);
  const selected = memories.find((memory) => memory.id === selectedId);
  if (subgraph.edges.length === 0) return <p class="sub">None of these memories states a fact.</p>;
  return (
    <>
      <figure class="graph-figure">
        <Picture
          subgraph={subgraph}
          at={at === now ? "" : new Date(at).toISOString()}
          legend={legend}
          root={undefined}
          hit={undefined}
          selectedEdge={selectedId}
          name="Picture of the facts, which are listed below as memories"
          onNode={(name) => select(subgraph.edges.find((edge) => edge.source === name || edge.target === name)?.id ?? "")}
          onEdge={select}
        />
        <figcaption class="legend">
          {legend.map((row) => (
            <span key={row.type}>
              <i class="swatch graph-type-swatch" style={{ background: `var(--${row.color})` }} />
              {row.type} {row.count}
            </span>
          ))}
          {subgraph.edges.some(ended) && (
            <span>
              <i class="graph-ended-swatch" />
              Ended
            </span>
          )}
          <span class="dim">Choose an edge to see the memory that states it.</span>
        </figcaption>
      </figure>
      {selected !== undefined && (
        <FactPanel key={selected.id} memory={selected} corrections={corrections} onClose={() => select("")} />
      )}
      <UndoBar of={corrections} />
    </>
  );
}

function FactPanel({
  memory,
  corrections,
  onClose,
}: {
  memory: Memory;
  corrections: ReturnType<typeof useCorrections>;
  onClose: () => void;
}) {
  const [isCorrecting, correct] = useState(false);
  const { fact } = memory;
  return (
    <section class="graph-edge-panel" aria-label="The chosen fact">
      <div class="row">
        <h2 class="block-title">
          {fact?.subject} <span class="dim">{fact?.predicate} →</span> {fact?.object}
        </h2>
        <span class="cluster">
          <button class="btn compact" type="button" onClick={() => correct(true)}>
            Correct …
          </button>
          <button class="btn compact" type="button" onClick={onClose}>
            Close
          </button>
        </span>
      </div>
      <blockquote class="text">{memory.text}</blockquote>
      <p class="small cluster">
        <LocationLink location={{ document: memory.id }}>Open the memory</LocationLink>
        <span class="dim">
          known since {instant(memory.known_from)}
          {memory.valid_until !== null && `, held until ${instant(memory.valid_until)}`}
        </span>
      </p>
      {isCorrecting && <CorrectDialog memory={memory} corrections={corrections} onClose={() => correct(false)} />}
    </section>
  );
}

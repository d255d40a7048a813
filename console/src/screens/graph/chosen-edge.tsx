/** One edge: what it says, when it holds, and the sentence that states it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { score } from "../../ui/format";
import { Failed, useLoad } from "../../ui/load";
import { LocationLink } from "../../ui/location";
import { useMay } from "../../ui/may";
import type { Undoing } from "../../ui/undo";
import { CorrectEdgeDialog } from "./correct";
import { period } from "./lists";
import { sentenceOf } from "./sentence";
import { ended, type Edge, type GraphCriteria, type Node } from "./state";

export function EdgePanel({
  edge,
  nodes,
  criteria,
  undoing,
  onClose,
}: {
  edge: Edge;
  /** The nodes of the graph, by their ids. */
  nodes: ReadonlyMap<string, Node>;
  criteria: GraphCriteria;
  undoing: Undoing;
  onClose: () => void;
}) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), [edge.id]);
  const [isCorrecting, correct] = useState(false);
  const { collection, graph } = criteria;
  const may = useMay(collection);
  const [source, target] = [nodes.get(edge.source), nodes.get(edge.target)];
  return (
    <section ref={panel} class="panel graph-edge-panel" aria-label="The chosen edge">
      <div class="row">
        <h2 class="block-title">
          {source?.name ?? edge.source} <span class="dim">{edge.type} →</span> {target?.name ?? edge.target}
        </h2>
        <span class="cluster">
          {may("editor", graph) && (
            <button class="btn compact" type="button" onClick={() => correct(true)}>
              Correct …
            </button>
          )}
          <button class="btn compact" type="button" onClick={onClose}>
            Close
          </button>
        </span>
      </div>
      <p class="small dim">
        weight {score(edge.weight)} {period(edge)} {ended(edge) && <span class="tag">ended</span>}
      </p>
      {edge.evidence === null ? (
        <p class="sub">No document is noted as its evidence.</p>
      ) : (
        <Evidence key={edge.id} document={edge.evidence} source={namesOf(source, edge.source)} target={namesOf(target, edge.target)} />
      )}
      {isCorrecting && (
        <CorrectEdgeDialog edge={edge} address={{ collection, graph }} undoing={undoing} onClose={() => correct(false)} />
      )}
    </section>
  );
}

const namesOf = (node: Node | undefined, id: string): readonly string[] =>
  node === undefined ? [id] : [node.name, ...(node.aliases ?? [])];

function Evidence({ document, source, target }: { document: string; source: readonly string[]; target: readonly string[] }) {
  const loaded = useLoad(async (signal) => {
    const { text } = await api.getText({ document }, { signal });
    return { sentence: sentenceOf(text, source, target) };
  }, [document]);
  if (loaded.error !== undefined) return <Failed problem={loaded.error} what="its evidence" retry={loaded.reload} />;
  if (loaded.data === undefined) return <p class="idle" aria-busy="true" />;
  const { sentence } = loaded.data;
  return (
    <>
      {sentence === undefined ? (
        <p class="sub">The document that states it names neither end.</p>
      ) : (
        <blockquote class="text">{sentence.text}</blockquote>
      )}
      <p class="small cluster">
        <LocationLink location={{ document, span: sentence }}>Open in the document</LocationLink>
        {sentence?.namesBoth === false && <span class="dim">It names one end only.</span>}
      </p>
    </>
  );
}

/** A graph: its nodes and edges at a time, what is around a node, and the way to each neighbor. */
import { useMemo } from "preact/hooks";
import { api } from "../../api/client";
import { usualOf } from "../../api/lists";
import { useAddress } from "../../ui/address";
import { labelledField, listField, shareField, textField, type Values } from "../../ui/address-fields";
import { SegmentedField } from "../../ui/controls";
import { counted, instant, wholeNumber } from "../../ui/format";
import { Failed, Missing, Show, State, useLoad } from "../../ui/load";
import { UndoBar, useUndo } from "../../ui/undo";
import { legendOf } from "./appearance";
import { EdgePanel } from "./chosen-edge";
import { Find } from "./find";
import { Edges, Merges, Neighbors, Way } from "./lists";
import { Picture } from "./picture";
import { Time } from "./time";
import {
  loadNeighborhood,
  ended,
  everything,
  filterSubgraph,
  MAX_SIZE,
  neighborhood,
  subgraphAt,
  type GraphCriteria,
  type Neighbor,
  type Subgraph,
  type Summary,
} from "./state";
import "./graph.css";

type Choice = readonly (readonly [string, string])[];

const HOPS = [
  ["1", "1"],
  ["2", "2"],
  ["3", "3"],
] as const;
const FIELDS = {
  collection: textField(),
  graph: textField(),
  node: textField(),
  hops: labelledField(HOPS),
  types: listField(),
  weight: shareField(),
  at: textField(),
  /** The neighbor whose way is shown. */
  hit: textField(),
  /** The edge whose sentence is shown. */
  edge: textField(),
};

type Change = (changes: Partial<Values<typeof FIELDS>>) => void;

export default function Graph() {
  const [{ hit, edge, hops, ...restrictions }, setFields] = useAddress(FIELDS);
  const collections = useLoad((signal) => api.listCollections({}, { signal }), []);
  const criteria = { ...restrictions, hops: Number(hops) };
  return (
    <Show of={collections} what="the collections">
      {(collectionList) => {
        const names = collectionList.map((collection) => collection.name);
        const collection = criteria.collection || usualOf(names);
        if (collection === undefined) return <Nothing />;
        return (
          <InCollection
            key={collection}
            collections={names}
            criteria={{ ...criteria, collection }}
            hit={hit}
            edge={edge}
            onChange={setFields}
          />
        );
      }}
    </Show>
  );
}

function Nothing() {
  return (
    <State title="There is no graph yet">
      <p class="sub">This screen shows nodes, the edges between them, and the way from one to another. Add some with:</p>
      <p class="mono">conspectus graph add-edges FILE</p>
    </State>
  );
}

interface Of {
  criteria: GraphCriteria;
  /** The neighbor whose way is shown. */
  hit: string;
  /** The id of the edge whose sentence is shown, or empty. */
  edge: string;
  onChange: Change;
}

function InCollection({ collections, criteria, hit, edge, onChange }: Of & { collections: readonly string[] }) {
  const { collection } = criteria;
  const graphs = useLoad((signal) => api.listGraphs({ collection }, { signal }), [collection]);
  const pickers = (summary: Summary | undefined) => (
    <div class="cluster">
      <Pick
        label="Collection"
        value={collection}
        options={collections.map((collection) => [collection, collection])}
        onChange={(value) => onChange({ ...EMPTY, graph: undefined, collection: value })}
      />
      {summary !== undefined && (
        <Pick
          label="Graph"
          value={summary.source.id}
          options={(graphs.data ?? []).map((graph) => [graph.source.id, graph.source.name.replace(/^graph\//, "")])}
          onChange={(value) => onChange({ ...EMPTY, graph: value })}
        />
      )}
    </div>
  );
  return (
    <Show of={graphs} what="the graphs">
      {(summaries) => {
        const named = (graph: Summary) => [graph.source.id, graph.source.name, graph.source.name.replace(/^graph\//, "")];
        const summary = criteria.graph === "" ? summaries[0] : summaries.find((graph) => named(graph).includes(criteria.graph));
        if (summary === undefined) {
          return (
            <>
              {collections.length > 1 && <div class="head">{pickers(summaries[0])}</div>}
              {criteria.graph === "" ? <Nothing /> : <Missing />}
            </>
          );
        }
        return (
          <OneGraph
            key={summary.source.id}
            summary={summary}
            criteria={{ ...criteria, graph: summary.source.id }}
            hit={hit}
            edge={edge}
            onChange={onChange}
            pickers={pickers(summary)}
            onMerged={graphs.reload}
          />
        );
      }}
    </Show>
  );
}

/** What a change of the graph or of its node resets. */
const EMPTY = { node: undefined, hit: undefined, edge: undefined, types: undefined, weight: undefined, at: undefined };

function Pick({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: Choice;
  onChange: (value: string) => void;
}) {
  return (
    <label class="small dim graph-pick">
      {label}{" "}
      <select class="pick" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function OneGraph({
  summary,
  criteria,
  hit,
  edge,
  onChange,
  pickers,
  onMerged,
}: Of & { summary: Summary; pickers: preact.ComponentChildren; onMerged: () => void }) {
  const small = summary.edges <= MAX_SIZE && summary.nodes <= MAX_SIZE;
  const { collection, graph, node, hops, types, weight, at } = criteria;
  const all = useLoad(
    (signal) => (small ? everything(criteria, signal) : undefined),
    [collection, graph, small],
  );
  const near = useLoad(
    async (signal) => (node === "" ? null : loadNeighborhood(criteria, signal)),
    [collection, graph, node, hops, types.join(), weight, at],
  );
  const surroundings = near.data ?? undefined;
  const subgraph = useMemo(() => {
    if (small && all.data === undefined) return undefined;
    if (node !== "") {
      if (surroundings === undefined) return undefined;
      const current = all.data === undefined ? undefined : subgraphAt(all.data, at);
      return filterSubgraph(neighborhood(surroundings.node, surroundings.near, current), criteria);
    }
    return all.data === undefined ? undefined : filterSubgraph(all.data, criteria);
  }, [all.data, surroundings, node, types.join(), weight]);
  const visible = useMemo(() => subgraph && subgraphAt(subgraph, at), [subgraph, at]);
  const selected = surroundings?.near.find((neighbor) => neighbor.node.id === hit);
  const go = (id: string) => onChange({ node: id, hit: undefined });
  const reload = () => [all, near].forEach((load) => load.reload());
  const undoing = useUndo(() => (onMerged(), reload()));
  const selectedEdge = subgraph?.edges.find((candidate) => candidate.id === edge);
  const nodes = useMemo(() => new Map(subgraph?.nodes.map((node) => [node.id, node])), [subgraph]);
  return (
    <>
      <div class="head">
        <Sentence summary={summary} criteria={criteria} subgraph={visible} surroundings={surroundings} />
        {pickers}
      </div>
      <div class="panel graph-controls">
        <Find
          criteria={criteria}
          selectedName={surroundings?.node.name}
          onNode={go}
          onClear={() => onChange({ node: undefined, hit: undefined })}
        />
        <Filters summary={summary} criteria={criteria} onChange={onChange} />
        <Time subgraph={all.data} at={at} onAt={(value) => onChange({ at: value })} />
      </div>
      {all.error !== undefined && <Failed problem={all.error} what="the graph" retry={all.reload} />}
      {near.error !== undefined && <Failed problem={near.error} what="the neighbors" retry={near.reload} />}
      {!small && node === "" && (
        <State title="This graph is too large to be drawn whole">
          <p class="sub">Find a node to see what is around it.</p>
        </State>
      )}
      {subgraph !== undefined && visible !== undefined && near.error === undefined && (
        <Body
          subgraph={subgraph}
          visible={visible}
          criteria={criteria}
          surroundings={surroundings}
          selected={selected}
          edge={edge}
          onHit={(id) => onChange({ hit: id })}
          onNode={go}
          onEdge={(id) => onChange({ edge: id })}
        >
          {edge !== "" && selectedEdge === undefined && (
            <p class="sub" role="status">
              The chosen edge is not in this picture. It was deleted, or other filters show it.
            </p>
          )}
          {selectedEdge !== undefined && (
            <EdgePanel
              key={selectedEdge.id}
              edge={selectedEdge}
              nodes={nodes}
              criteria={criteria}
              undoing={undoing}
              onClose={() => onChange({ edge: "" })}
            />
          )}
        </Body>
      )}
      <UndoBar of={undoing} />
      <Merges
        criteria={criteria}
        onUndone={() => {
          onMerged();
          reload();
        }}
      />
    </>
  );
}

type Surroundings = { node: { id: string; name: string }; near: Neighbor[] };

function Sentence({
  summary,
  criteria,
  subgraph,
  surroundings,
}: {
  summary: Summary;
  criteria: GraphCriteria;
  subgraph: Subgraph | undefined;
  surroundings: Surroundings | undefined;
}) {
  const then = criteria.at === "" ? "" : ` on ${instant(criteria.at)}`;
  if (criteria.node !== "" && surroundings !== undefined) {
    return (
      <h1 class="graph-say">
        <b>{surroundings.node.name}</b> reaches <b class="lit">{counted(surroundings.near.length, "node")}</b> in{" "}
        {counted(criteria.hops, "hop")}
        {then}.{surroundings.near.length === 1_000 && " These are the nearest."}
      </h1>
    );
  }
  const edges = subgraph?.edges.length ?? summary.edges;
  return (
    <h1 class="graph-say">
      <b class="lit">{counted(subgraph?.nodes.length ?? summary.nodes, "node")}</b> and <b>{counted(edges, "edge")}</b>
      {edges < summary.edges && ` of ${wholeNumber(summary.edges)}`}
      {then}.
    </h1>
  );
}

function Filters({ summary, criteria, onChange }: { summary: Summary; criteria: GraphCriteria; onChange: Change }) {
  const { types, weight, hops } = criteria;
  const toggled = (type: string) =>
    types.includes(type) ? types.filter((other) => other !== type) : [...types, type];
  const relations = Object.entries(summary.relations).sort((a, b) => b[1] - a[1]);
  return (
    <>
      <SegmentedField
        label="Hops"
        options={HOPS}
        value={String(hops) as "1" | "2" | "3"}
        onChange={(value) => onChange({ hops: value, hit: undefined })}
      />
      <label class="graph-weight">
        <span class="label">
          Weight from <b>{weight.toFixed(2)}</b>
        </span>
        <input
          type="range"
          min="0"
          max="1"
          step="0.05"
          value={weight}
          onChange={(event) => onChange({ weight: Number(event.currentTarget.value) })}
        />
      </label>
      <div class="graph-types chips" role="group" aria-label="Types of edges">
        <button class="chip" type="button" aria-pressed={types.length === 0} onClick={() => onChange({ types: [] })}>
          All types <b>{wholeNumber(summary.edges)}</b>
        </button>
        {relations.slice(0, 40).map(([type, count]) => (
          <button
            key={type}
            class="chip"
            type="button"
            aria-pressed={types.includes(type)}
            onClick={() => onChange({ types: toggled(type), hit: undefined })}
          >
            <span>{type}</span> <b>{wholeNumber(count)}</b>
          </button>
        ))}
      </div>
    </>
  );
}

function Body({
  subgraph,
  visible,
  criteria,
  surroundings,
  selected,
  edge,
  onHit,
  onNode,
  onEdge,
  children,
}: {
  /** What has a place in the picture, at any time. */
  subgraph: Subgraph;
  /** What of it held at the time that is shown. */
  visible: Subgraph;
  criteria: GraphCriteria;
  surroundings: Surroundings | undefined;
  selected: Neighbor | undefined;
  edge: string;
  onHit: (id: string) => void;
  onNode: (id: string) => void;
  onEdge: (id: string) => void;
  /** The chosen edge. */
  children: preact.ComponentChildren;
}) {
  const names = useMemo(() => new Map(subgraph.nodes.map((node) => [node.id, node.name])), [subgraph]);
  const legend = useMemo(() => legendOf(subgraph.nodes), [subgraph]);
  const root = criteria.node === "" ? undefined : criteria.node;
  if (visible.nodes.length === 0) return <State title="Nothing in the graph was valid then" />;
  return (
    <>
      <div class={surroundings === undefined ? "" : "beside"}>
        <figure class="panel graph-figure">
          <Picture
            subgraph={subgraph}
            at={criteria.at}
            legend={legend}
            root={root}
            hit={selected}
            selectedEdge={edge}
            name={`Picture of ${counted(visible.nodes.length, "node")} and ${counted(visible.edges.length, "edge")}, which are listed below`}
            onNode={(id) => (root === undefined || id === root ? onNode(id) : onHit(id))}
            onEdge={onEdge}
          />
          <figcaption class="legend">
            {selected !== undefined && (
              <span>
                <i class="swatch graph-way-swatch" />
                Way to {selected.node.name}
              </span>
            )}
            {legend.map((row) => (
              <span key={row.type}>
                <i class="swatch graph-type-swatch" style={{ background: `var(--${row.color})` }} />
                {row.type} {wholeNumber(row.count)}
              </span>
            ))}
            <span class="dim">
              Size is the number of edges. Choose a node to see {root === undefined ? "what is around it" : "the way to it"}, and an
              edge for its sentence.
            </span>
            {subgraph.edges.some(ended) && (
              <span>
                <i class="graph-ended-swatch" />
                Ended
              </span>
            )}
          </figcaption>
        </figure>
        {surroundings !== undefined && (
          <aside class="panel graph-side" aria-label="Neighbors">
            {selected !== undefined && <Way hit={selected} names={names} onNode={() => onNode(selected.node.id)} />}
            <div class="row">
              <h2>{counted(surroundings.near.length, "neighbor")}</h2>
              <span class="tiny dim">weight of the way</span>
            </div>
            <Neighbors near={surroundings.near} hit={selected} onHit={onHit} />
          </aside>
        )}
      </div>
      {children}
      <Edges subgraph={visible} names={names} onNode={onNode} onEdge={onEdge} />
    </>
  );
}

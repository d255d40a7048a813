/** A graph: its nodes and edges at a time, what is around a node, and the way to each neighbor. */
import { useMemo, useState } from "preact/hooks";
import { api } from "../../api/client";
import { usualOf } from "../../api/lists";
import { useFields } from "../../ui/address";
import { SegmentedField } from "../../ui/controls";
import { counted, instant, whole } from "../../ui/format";
import { Failed, Show, State, useLoad } from "../../ui/load";
import { Find } from "./find";
import { Edges, Merges, Neighbors, Way } from "./lists";
import { Picture } from "./picture";
import {
  around,
  ended,
  everything,
  filtered,
  MAX_SIZE,
  neighborhood,
  type Asked,
  type Neighbor,
  type Shown,
  type Summary,
} from "./state";
import "./graph.css";

type Change = (changes: Record<string, string | undefined>) => void;
type Choice = readonly (readonly [string, string])[];

const HOPS: readonly (readonly ["1" | "2" | "3", string])[] = [
  ["1", "1"],
  ["2", "2"],
  ["3", "3"],
];
const BETWEEN = "\n";

function askedOf(fields: URLSearchParams): Asked {
  const hops = Number(fields.get("hops"));
  const weight = Number(fields.get("weight"));
  return {
    collection: fields.get("collection") ?? "",
    graph: fields.get("graph") ?? "",
    node: fields.get("node") ?? "",
    hops: hops >= 1 && hops <= 3 ? hops : 1,
    types: fields.get("types")?.split(BETWEEN) ?? [],
    weight: weight > 0 && weight <= 1 ? weight : 0,
    at: fields.get("at") ?? "",
  };
}

export default function Graph() {
  const [fields, setFields] = useFields();
  const collections = useLoad((signal) => api.listCollections({}, { signal }), []);
  const asked = askedOf(fields);
  const hit = fields.get("hit") ?? "";
  return (
    <Show of={collections} what="the collections">
      {(found) => {
        const names = found.map((each) => each.name);
        const collection = asked.collection || usualOf(names);
        if (collection === undefined) return <Nothing />;
        return (
          <InCollection
            key={collection}
            collections={names}
            asked={{ ...asked, collection }}
            hit={hit}
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
  asked: Asked;
  /** The neighbor whose way is shown. */
  hit: string;
  onChange: Change;
}

function InCollection({ collections, asked, hit, onChange }: Of & { collections: readonly string[] }) {
  const { collection } = asked;
  const graphs = useLoad((signal) => api.listGraphs({ collection }, { signal }), [collection]);
  const pickers = (chosen: Summary | undefined) => (
    <div class="cluster">
      <Pick
        label="Collection"
        value={collection}
        options={collections.map((each) => [each, each])}
        onChange={(value) => onChange({ ...EMPTY, graph: undefined, collection: value })}
      />
      {chosen !== undefined && (
        <Pick
          label="Graph"
          value={chosen.source.id}
          options={(graphs.data ?? []).map((each) => [each.source.id, each.source.name.replace(/^graph\//, "")])}
          onChange={(value) => onChange({ ...EMPTY, graph: value })}
        />
      )}
    </div>
  );
  return (
    <Show of={graphs} what="the graphs">
      {(found) => {
        const named = (each: Summary) => [each.source.id, each.source.name, each.source.name.replace(/^graph\//, "")];
        const summary = asked.graph === "" ? found[0] : found.find((each) => named(each).includes(asked.graph));
        if (summary === undefined) {
          return (
            <>
              {collections.length > 1 && <div class="head">{pickers(found[0])}</div>}
              {asked.graph === "" ? <Nothing /> : <State title="Nothing here that you may see" />}
            </>
          );
        }
        return (
          <OneGraph
            key={summary.source.id}
            summary={summary}
            asked={{ ...asked, graph: summary.source.id }}
            hit={hit}
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
const EMPTY = { node: undefined, hit: undefined, types: undefined, weight: undefined, at: undefined };

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
  asked,
  hit,
  onChange,
  pickers,
  onMerged,
}: Of & { summary: Summary; pickers: preact.ComponentChildren; onMerged: () => void }) {
  const small = summary.edges <= MAX_SIZE && summary.nodes <= MAX_SIZE;
  const { collection, graph, node, hops, types, weight, at } = asked;
  const all = useLoad(
    (signal) => (small ? everything(asked, signal) : undefined),
    [collection, graph, at, small],
  );
  const near = useLoad(
    async (signal) => (node === "" ? null : around(asked, signal)),
    [collection, graph, node, hops, types.join(BETWEEN), weight, at],
  );
  const found = near.data ?? undefined;
  const shown = useMemo(() => {
    if (small && all.data === undefined) return undefined;
    if (node !== "") {
      return found === undefined ? undefined : filtered(neighborhood(found.node, found.near, all.data), asked);
    }
    return all.data === undefined ? undefined : filtered(all.data, asked);
  }, [all.data, found, node, types.join(BETWEEN), weight]);
  const chosen = found?.near.find((each) => each.node.id === hit);
  const go = (id: string) => onChange({ node: id, hit: undefined });
  const reload = () => [all, near].forEach((each) => each.reload());
  return (
    <>
      <div class="head">
        <Sentence summary={summary} asked={asked} shown={shown} found={found} />
        {pickers}
      </div>
      <div class="panel graph-controls">
        <Find asked={asked} chosen={found?.node.name} onNode={go} onClear={() => onChange({ node: undefined, hit: undefined })} />
        <Filters summary={summary} asked={asked} onChange={onChange} />
        <Time shown={all.data} at={at} onAt={(value) => onChange({ at: value })} />
      </div>
      {all.error !== undefined && <Failed problem={all.error} what="the graph" retry={all.reload} />}
      {near.error !== undefined && <Failed problem={near.error} what="the neighbors" retry={near.reload} />}
      {!small && node === "" && (
        <State title="This graph is too large to be drawn whole">
          <p class="sub">Find a node to see what is around it.</p>
        </State>
      )}
      {shown !== undefined && near.error === undefined && (
        <Body shown={shown} asked={asked} found={found} chosen={chosen} onHit={(id) => onChange({ hit: id })} onNode={go} />
      )}
      <Merges
        asked={asked}
        onUndone={() => {
          onMerged();
          reload();
        }}
      />
    </>
  );
}

type Found = { node: { id: string; name: string }; near: Neighbor[] };

function Sentence({
  summary,
  asked,
  shown,
  found,
}: {
  summary: Summary;
  asked: Asked;
  shown: Shown | undefined;
  found: Found | undefined;
}) {
  const then = asked.at === "" ? "" : ` on ${instant(asked.at)}`;
  if (asked.node !== "" && found !== undefined) {
    return (
      <h1 class="graph-say">
        <b>{found.node.name}</b> reaches <b class="lit">{counted(found.near.length, "node")}</b> in{" "}
        {counted(asked.hops, "hop")}
        {then}.{found.near.length === 1_000 && " These are the nearest."}
      </h1>
    );
  }
  const edges = shown?.edges.length ?? summary.edges;
  return (
    <h1 class="graph-say">
      <b class="lit">{counted(shown?.nodes.length ?? summary.nodes, "node")}</b> and <b>{counted(edges, "edge")}</b>
      {edges < summary.edges && ` of ${whole(summary.edges)}`}
      {then}.
    </h1>
  );
}

function Filters({ summary, asked, onChange }: { summary: Summary; asked: Asked; onChange: Change }) {
  const { types, weight, hops } = asked;
  const toggled = (type: string) =>
    (types.includes(type) ? types.filter((each) => each !== type) : [...types, type]).join(BETWEEN);
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
          onChange={(event) => onChange({ weight: event.currentTarget.value === "0" ? "" : event.currentTarget.value })}
        />
      </label>
      <div class="graph-types chips" role="group" aria-label="Types of edges">
        <button class="chip" type="button" aria-pressed={types.length === 0} onClick={() => onChange({ types: "" })}>
          All types <b>{whole(summary.edges)}</b>
        </button>
        {relations.slice(0, 40).map(([type, count]) => (
          <button
            key={type}
            class="chip"
            type="button"
            aria-pressed={types.includes(type)}
            onClick={() => onChange({ types: toggled(type), hit: undefined })}
          >
            <span>{type}</span> <b>{whole(count)}</b>
          </button>
        ))}
      </div>
    </>
  );
}

const MINUTE = 60_000;

/** A slider from the first time in the graph until now, with the same as a field. */
function Time({ shown, at, onAt }: { shown: Shown | undefined; at: string; onAt: (at: string) => void }) {
  const [first, setFirst] = useState<number>();
  const dated = useMemo(() => {
    let least = Infinity;
    for (const each of [...(shown?.nodes ?? []), ...(shown?.edges ?? [])]) {
      for (const time of [each.valid_from, each.valid_until]) {
        if (time !== null) least = Math.min(least, Date.parse(time));
      }
    }
    return Number.isFinite(least) ? least : undefined;
  }, [shown]);
  if (dated !== undefined && (first === undefined || dated < first)) setFirst(dated);
  const now = Date.now();
  const value = at === "" ? now : Date.parse(at);
  const choose = (time: number) => onAt(time >= now - MINUTE ? "" : new Date(time).toISOString());
  return (
    <div class="graph-time">
      <label>
        <span class="label">
          As of <b>{at === "" ? "now, with what has ended" : instant(at)}</b>
        </span>
        <input
          type="range"
          min={first ?? now - 1}
          max={now}
          value={value}
          disabled={first === undefined}
          aria-valuetext={at === "" ? "now" : instant(at)}
          onChange={(event) => choose(Number(event.currentTarget.value))}
        />
      </label>
      <input
        class="field"
        type="datetime-local"
        aria-label="Time"
        value={at === "" ? "" : local(value)}
        onChange={(event) => {
          const time = Date.parse(event.currentTarget.value);
          onAt(Number.isNaN(time) ? "" : new Date(time).toISOString());
        }}
      />
      {at !== "" && (
        <button class="btn" type="button" onClick={() => onAt("")}>
          Now
        </button>
      )}
    </div>
  );
}

/** A time as a field of the browser wants it, in its own zone. */
function local(time: number): string {
  const offset = new Date(time).getTimezoneOffset() * MINUTE;
  return new Date(time - offset).toISOString().slice(0, 16);
}

function Body({
  shown,
  asked,
  found,
  chosen,
  onHit,
  onNode,
}: {
  shown: Shown;
  asked: Asked;
  found: Found | undefined;
  chosen: Neighbor | undefined;
  onHit: (id: string) => void;
  onNode: (id: string) => void;
}) {
  const names = useMemo(() => new Map(shown.nodes.map((each) => [each.id, each.name])), [shown]);
  const root = asked.node === "" ? undefined : asked.node;
  if (shown.nodes.length === 0) return <State title="Nothing in the graph was valid then" />;
  return (
    <>
      <div class={found === undefined ? "" : "beside"}>
        <figure class="panel graph-figure">
          <Picture
            shown={shown}
            root={root}
            hit={chosen}
            name={`Picture of ${counted(shown.nodes.length, "node")} and ${counted(shown.edges.length, "edge")}, which are listed below`}
            onNode={(id) => (root === undefined || id === root ? onNode(id) : onHit(id))}
          />
          <figcaption class="legend">
            {chosen !== undefined && (
              <span>
                <i class="swatch graph-way-swatch" />
                Way to {chosen.node.name}
              </span>
            )}
            <span>{root === undefined ? "Choose a node to see what is around it." : "Choose a node to see the way to it."}</span>
            {shown.edges.some(ended) && (
              <span>
                <i class="graph-ended-swatch" />
                Ended
              </span>
            )}
          </figcaption>
        </figure>
        {found !== undefined && (
          <aside class="panel graph-side" aria-label="Neighbors">
            {chosen !== undefined && <Way hit={chosen} names={names} onNode={() => onNode(chosen.node.id)} />}
            <div class="row">
              <h2>{counted(found.near.length, "neighbor")}</h2>
              <span class="tiny dim">weight of the way</span>
            </div>
            <Neighbors near={found.near} hit={chosen} onHit={onHit} />
          </aside>
        )}
      </div>
      <Edges shown={shown} names={names} onNode={onNode} />
    </>
  );
}

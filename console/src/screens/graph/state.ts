/** What is shown of a graph: its nodes and edges, of all of it, at a time, or around one node. */
import { api, type Schemas } from "../../api/client";

export type Node = Pick<Schemas["Node"], "id" | "type" | "name" | "valid_from" | "valid_until"> & {
  /** Other names; left out where they are not known. */
  aliases?: readonly string[];
};
export type Edge = Pick<
  Schemas["Edge"],
  "id" | "source" | "target" | "type" | "weight" | "valid_from" | "valid_until" | "evidence"
>;
export type Neighbor = Schemas["Neighbor"];
export type Summary = Schemas["GraphSummary"];

export interface Subgraph {
  nodes: readonly Node[];
  edges: readonly Edge[];
}

export interface GraphCriteria {
  collection: string;
  graph: string;
  node: string;
  hops: number;
  types: readonly string[];
  weight: number;
  /** An instant, or nothing. */
  at: string;
}

/** Edges and nodes that are drawn; larger graphs are shown around a node. */
export const MAX_SIZE = 20_000;
const PAGE = 1_000;

/** Everything in a graph, ended edges included. */
export async function everything({ collection, graph }: GraphCriteria, signal: AbortSignal): Promise<Subgraph> {
  const nodes: Node[] = [];
  const edges: Edge[] = [];
  for (let after: string | null = null, more = true; more; more = after !== null) {
    const query = { collection, limit: PAGE, after };
    const page: Schemas["NodePage"] = await api.listNodes({ graph, ...query }, { signal });
    nodes.push(...page.nodes);
    after = page.next;
  }
  for (let after: string | null = null, more = true; more; more = after !== null) {
    const query = { collection, limit: PAGE, after };
    const page: Schemas["EdgePage"] = await api.listEdges({ graph, ...query }, { signal });
    edges.push(...page.edges);
    after = page.next;
  }
  return { nodes, edges };
}

export async function loadNeighborhood(criteria: GraphCriteria, signal: AbortSignal): Promise<{ node: Node; near: Neighbor[] }> {
  const { collection, graph, node, hops, types, weight, at } = criteria;
  const query = { collection, node, hops, types: [...types], min_weight: weight, at: at || null, limit: PAGE };
  const [details, near] = await Promise.all([
    api.getNode({ graph, node, collection }, { signal }),
    api.neighbors({ graph, ...query }, { signal }),
  ]);
  return { node: details, near };
}

/** Whether a node or an edge holds at an instant, in milliseconds: both ends are included, as on the server. */
export function isValidAt({ valid_from: from, valid_until: until }: Node | Edge, at: number): boolean {
  return (from === null || Date.parse(from) <= at) && (until === null || Date.parse(until) >= at);
}

/** What held at an instant of the address, or everything where it names none. */
export function subgraphAt(subgraph: Subgraph, at: string): Subgraph {
  if (at === "") return subgraph;
  const moment = Date.parse(at);
  const nodes = subgraph.nodes.filter((node) => isValidAt(node, moment));
  const ids = new Set(nodes.map((node) => node.id));
  const edges = subgraph.edges.filter((edge) => isValidAt(edge, moment) && ids.has(edge.source) && ids.has(edge.target));
  return { nodes, edges };
}

/** The edges that a filter leaves, between nodes that are shown. */
export function filterSubgraph(subgraph: Subgraph, { types, weight }: GraphCriteria): Subgraph {
  const there = new Set(subgraph.nodes.map((node) => node.id));
  const edges = subgraph.edges.filter(
    (edge) =>
      (types.length === 0 || types.includes(edge.type)) &&
      edge.weight >= weight &&
      there.has(edge.source) &&
      there.has(edge.target),
  );
  return { nodes: subgraph.nodes, edges };
}

/** A node and its neighbors; without the whole graph, the edges are those of the ways to them. */
export function neighborhood(node: Node, near: readonly Neighbor[], graph: Subgraph | undefined): Subgraph {
  const nodes = [node, ...near.map((neighbor) => neighbor.node)];
  if (graph !== undefined) return { nodes, edges: graph.edges };
  const steps = near.flatMap((neighbor) => neighbor.steps.slice(-1));
  const open = { valid_from: null, valid_until: null, evidence: null };
  return { nodes, edges: steps.map((step, at) => ({ ...step, ...open, id: String(at) })) };
}

export const ended = (edge: Edge): boolean => edge.valid_until !== null && new Date(edge.valid_until) < new Date();

/** What is shown of a graph: its nodes and edges, of all of it, at a time, or around one node. */
import { api, type Schemas } from "../../api/client";

export type Node = Pick<Schemas["Node"], "id" | "type" | "name" | "valid_from" | "valid_until">;
export type Edge = Pick<
  Schemas["Edge"],
  "id" | "source" | "target" | "type" | "weight" | "valid_from" | "valid_until" | "evidence"
>;
export type Neighbor = Schemas["Neighbor"];
export type Summary = Schemas["GraphSummary"];

export interface Shown {
  nodes: readonly Node[];
  edges: readonly Edge[];
}

export interface Asked {
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

/** Everything in a graph, ended edges included, or what was valid at an instant. */
export async function everything({ collection, graph, at }: Asked, signal: AbortSignal): Promise<Shown> {
  if (at !== "") {
    return api.getGraphSnapshot({ graph, at, collection }, { signal });
  }
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

export async function loadNeighborhood(criteria: Asked, signal: AbortSignal): Promise<{ node: Node; near: Neighbor[] }> {
  const { collection, graph, node, hops, types, weight, at } = criteria;
  const query = { collection, node, hops, types: [...types], min_weight: weight, at: at || null, limit: PAGE };
  const [details, near] = await Promise.all([
    api.getNode({ graph, node, collection }, { signal }),
    api.neighbors({ graph, ...query }, { signal }),
  ]);
  return { node: details, near };
}

/** The edges that a filter leaves, between nodes that are shown. */
export function filterSubgraph(subgraph: Shown, { types, weight }: Asked): Shown {
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
export function neighborhood(node: Node, near: readonly Neighbor[], graph: Shown | undefined): Shown {
  const nodes = [node, ...near.map((neighbor) => neighbor.node)];
  if (graph !== undefined) return { nodes, edges: graph.edges };
  const steps = near.flatMap((neighbor) => neighbor.steps.slice(-1));
  const open = { valid_from: null, valid_until: null, evidence: null };
  return { nodes, edges: steps.map((step, at) => ({ ...step, ...open, id: String(at) })) };
}

export const ended = (edge: Edge): boolean => edge.valid_until !== null && new Date(edge.valid_until) < new Date();

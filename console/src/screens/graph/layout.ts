/** Places for the nodes of a graph: rings around a node, or around the one with most edges in each part. */
import { hierarchy, tree } from "d3-hierarchy";
import type { Edge, Node } from "./state";

export type Place = { x: number; y: number };

interface Branch {
  id: string;
  children: Branch[];
}

const RING = 110;
const APART = 22;

/** Radial and without chance: the same graph is always the same picture. */
export function placesOf(nodes: readonly Node[], edges: readonly Edge[], root: string | undefined): Map<string, Place> {
  const trees = spanningTree(nodes, edges, root);
  const one = trees.length === 1 ? trees[0]! : { id: "", children: trees };
  const laid = tree<Branch>()
    .size([2 * Math.PI, 1])
    .separation((a, b) => (a.parent === b.parent ? 1 : 2) / Math.max(a.depth, 1))(hierarchy(one));
  const counts: number[] = [];
  laid.each((point) => {
    counts[point.depth] = (counts[point.depth] ?? 0) + 1;
  });
  const radii = [0];
  for (let depth = 1; depth < counts.length; depth += 1) {
    radii.push(Math.max(radii[depth - 1]! + RING, (counts[depth]! * APART) / (2 * Math.PI)));
  }
  const places = new Map<string, Place>();
  laid.each(({ data, depth, x }) => {
    const radius = radii[depth]!;
    if (data !== one || trees.length === 1) {
      places.set(data.id, { x: Math.cos(x) * radius, y: Math.sin(x) * radius });
    }
  });
  return places;
}

/** A tree for each connected part, from its node with most edges. */
function spanningTree(nodes: readonly Node[], edges: readonly Edge[], root: string | undefined): Branch[] {
  const beside = new Map<string, string[]>(nodes.map((node) => [node.id, []]));
  for (const { source, target } of edges) {
    beside.get(source)?.push(target);
    beside.get(target)?.push(source);
  }
  const order = [...beside.keys()].sort((a, b) => beside.get(b)!.length - beside.get(a)!.length);
  if (root !== undefined && beside.has(root)) order.unshift(root);
  const seen = new Set<string>();
  const grown = (id: string): Branch => {
    const trunk: Branch = { id, children: [] };
    const queue = [trunk];
    seen.add(id);
    for (const branch of queue) {
      for (const next of beside.get(branch.id)!) {
        if (seen.has(next) || !beside.has(next)) continue;
        seen.add(next);
        const child: Branch = { id: next, children: [] };
        branch.children.push(child);
        queue.push(child);
      }
    }
    return trunk;
  };
  return order.flatMap((id) => (seen.has(id) ? [] : [grown(id)]));
}

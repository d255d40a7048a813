/** How nodes look: a color for each of the commonest types, and a size by importance. */
import type { Edge, Node } from "./state";

/** Variables of the style sheet, in the order in which types get them. */
const COLORS = ["g1", "g2", "g3", "g4", "g5", "g6", "g7"] as const;
const OTHER = "p2";
export const OTHER_TYPES = "other types";

export interface TypeColor {
  /** A type of nodes, or `OTHER_TYPES`. */
  type: string;
  /** The name of a variable of the style sheet. */
  color: string;
  count: number;
}

/** The types with their colors, the commonest first; those that have none of their own are one. */
export function legendOf(nodes: readonly Node[]): TypeColor[] {
  const counts = new Map<string, number>();
  for (const { type } of nodes) counts.set(type, (counts.get(type) ?? 0) + 1);
  const types = [...counts].sort(([a, one], [b, other]) => other - one || a.localeCompare(b));
  const colored = types.slice(0, COLORS.length).map(([type, count], at) => ({ type, count, color: COLORS[at] ?? OTHER }));
  const rest = types.slice(COLORS.length).reduce((sum, [, count]) => sum + count, 0);
  return rest === 0 ? colored : [...colored, { type: OTHER_TYPES, count: rest, color: OTHER }];
}

export function colorOf(legend: readonly TypeColor[], type: string): string {
  return legend.find((row) => row.type === type)?.color ?? OTHER;
}

/** The number of edges of each node, by which it is important. */
export function degreesOf({ nodes, edges }: { nodes: readonly Node[]; edges: readonly Edge[] }): Map<string, number> {
  const degrees = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { source, target } of edges) {
    degrees.set(source, (degrees.get(source) ?? 0) + 1);
    if (target !== source) degrees.set(target, (degrees.get(target) ?? 0) + 1);
  }
  return degrees;
}

/** The size of a node from 1 (least) to 4 (most important); area grows with the number of edges. */
export const importance = (degree: number, most: number): number => 1 + 3 * Math.sqrt(degree / Math.max(most, 1));

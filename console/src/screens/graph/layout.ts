/** Places for the nodes of a graph by forces: neighbors attract, all repel, so that clusters stand apart. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";
import type { Edge, Node } from "./state";

export type Place = { x: number; y: number };

interface Body extends SimulationNodeDatum {
  id: string;
}

/** Steps of a small graph; a large one has fewer, so that it takes seconds. */
const STEPS = 300;
const STEPS_OF_LARGE = 60;
const LARGE = 2_000;
/** How far nodes are taken together when they repel: coarser is faster. */
const [FINE, COARSE] = [0.9, 1.5];
const LINK = 60;
/** The radius around a node that no other one enters, which leaves room for its name. */
const APART = 26;
const REPULSION = -160;
/** Beyond this distance nodes do not repel, which keeps parts without an edge between them together. */
const REACH = 900;
const TO_CENTER = 0.05;

/** The same graph always has the same places: the forces use no chance. */
export function placesOf(nodes: readonly Pick<Node, "id">[], edges: readonly Pick<Edge, "source" | "target">[], root: string | undefined): Map<string, Place> {
  const bodies: Body[] = nodes.map(({ id }) => (id === root ? { id, fx: 0, fy: 0 } : { id }));
  const ids = new Set(nodes.map((node) => node.id));
  const links = edges
    .filter(({ source, target }) => ids.has(source) && ids.has(target) && source !== target)
    .map(({ source, target }) => ({ source, target }));
  const isLarge = nodes.length > LARGE;
  const steps = isLarge ? STEPS_OF_LARGE : STEPS;
  const simulation = forceSimulation(bodies)
    .force("link", forceLink<Body, { source: string | Body; target: string | Body }>(links).id((body) => body.id).distance(LINK))
    .force("charge", forceManyBody().strength(REPULSION).distanceMax(REACH).theta(isLarge ? COARSE : FINE))
    .force("collide", isLarge ? null : forceCollide(APART))
    .force("x", forceX().strength(TO_CENTER))
    .force("y", forceY().strength(TO_CENTER))
    .alphaDecay(1 - Math.pow(0.001, 1 / steps))
    .stop();
  simulation.tick(steps);
  return new Map(bodies.map(({ id, x = 0, y = 0 }) => [id, { x, y }]));
}

/** The graph as a picture, on canvases, as WebGL is slow where there is no GPU. The lists are its accessible form. */
import type { Core, StylesheetStyle } from "cytoscape";
import { useEffect, useRef, useState } from "preact/hooks";
import { degreesOf, importance, type TypeColor } from "./appearance";
import type { Place } from "./layout";
import { ended, isValidAt, type Neighbor, type Subgraph } from "./state";

/** Up to so many edges they have arrows and a width by weight. */
const FEW = 400;
/** Up to so many edges they are drawn with their full color. */
const SOME = 2_000;
const CLEAR = 70;
/** Pixels of width in which so many names are clear. */
const WIDE = 1200;
/** Letters of a name in the picture. */
const LABEL = 32;
/** Pixels of the name of the most important node, however many there are. */
const HUB_NAME = 12;
const PADDING = 20;
const MARGIN = { x: 120, y: 60 };
/** Cytoscape adds an inline style sheet, which the policy of the page refuses, unless an element has this id. */
const OWN_STYLE = "__________cytoscape_stylesheet";

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const short = (text: string): string => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

/** Sizes shrink with the number of nodes in the width, so that names appear as soon as there is room for them. */
const scaleOf = ({ nodes }: Subgraph, width: number): number =>
  Math.max(0.3, Math.min(1, Math.sqrt((CLEAR * Math.min(1, width / WIDE)) / nodes.length)));

function styles(subgraph: Subgraph, legend: readonly TypeColor[], width: number): StylesheetStyle[] {
  const few = subgraph.edges.length <= FEW;
  const scale = scaleOf(subgraph, width);
  return [
    {
      selector: "node",
      style: {
        width: `mapData(importance, 1, 4, ${7 * scale}, ${24 * scale})`,
        height: `mapData(importance, 1, 4, ${7 * scale}, ${24 * scale})`,
        "background-color": color("p2"),
        label: "data(label)",
        color: color("ink2"),
        // The names of important nodes are larger, so that they are the first that are readable.
        "font-size": `mapData(importance, 1, 4, ${8 * scale}, ${Math.max(13 * scale, HUB_NAME)})`,
        "font-family": getComputedStyle(document.body).fontFamily,
        "min-zoomed-font-size": 9,
        "text-valign": "bottom",
        "text-margin-y": 3,
        "text-background-color": color("surface"),
        "text-background-opacity": 0.6,
        "overlay-color": color("accent"),
      },
    },
    ...legend.map((row, at) => ({ selector: `node.type${at}`, style: { "background-color": color(row.color) } })),
    {
      selector: "edge",
      style: {
        width: few ? "mapData(weight, 0, 1, 0.6, 2.6)" : 0.6,
        "line-color": color("line2"),
        "line-opacity": few ? 1 : subgraph.edges.length <= SOME ? 0.55 : 0.25,
        "curve-style": few ? "bezier" : "haystack",
        "target-arrow-shape": "triangle",
        "target-arrow-color": color("line2"),
        "arrow-scale": 0.7,
      },
    },
    { selector: "edge.ended", style: { "line-style": "dashed" } },
    { selector: ".absent", style: { display: "none" } },
    { selector: "node.root", style: { "border-width": 3 * scale, "border-color": color("ink"), color: color("ink") } },
    { selector: "node.path", style: { "border-width": 4 * scale, "border-color": color("accent"), color: color("ink") } },
    {
      selector: "edge.path, edge.selected-edge",
      style: {
        "line-color": color("accent"),
        "line-opacity": 1,
        "target-arrow-color": color("accent"),
        width: few ? 3 : 1.8,
        "z-index": 9,
      },
    },
  ] as StylesheetStyle[];
}

const nodeId = (id: string) => `node ${id}`;
const edgeId = (id: string) => `edge ${id}`;

/** The places of the nodes, from a worker: the page answers meanwhile. */
async function layOut({ nodes, edges }: Subgraph, root: string | undefined): Promise<Map<string, Place>> {
  const worker = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Map<string, Place>>) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      const ids = nodes.map(({ id }) => ({ id }));
      const links = edges.map(({ source, target }) => ({ source, target }));
      worker.postMessage({ nodes: ids, edges: links, root });
    });
  } finally {
    worker.terminate();
  }
}

/** Draws the graph, unless the page has left the container meanwhile: then nothing has the id of the style sheet. */
async function drawGraph(
  container: HTMLElement,
  subgraph: Subgraph,
  legend: readonly TypeColor[],
  root: string | undefined,
): Promise<Core | undefined> {
  const [{ default: cytoscape }, places] = await Promise.all([import("cytoscape"), layOut(subgraph, root)]);
  if (!container.isConnected) return undefined;
  const extent = (axis: "x" | "y") => Math.max(1, ...[...places.values()].map((point) => Math.abs(point[axis])));
  const room = Math.max(80, Math.min(container.clientWidth - MARGIN.x, 2 * (container.clientHeight - MARGIN.y)));
  const stretch = {
    x: room / 2 / extent("x"),
    y: Math.max(80, container.clientHeight - MARGIN.y) / 2 / extent("y"),
  };
  const position = (id: string) => {
    const position = places.get(id)!;
    return { x: position.x * stretch.x, y: position.y * stretch.y };
  };
  const degrees = degreesOf(subgraph);
  const most = Math.max(0, ...degrees.values());
  const typeClass = (type: string) => {
    const at = legend.findIndex((row) => row.type === type);
    return `type${at === -1 ? legend.length - 1 : at}`;
  };
  return cytoscape({
    container,
    layout: { name: "preset", padding: PADDING },
    minZoom: 0.2,
    maxZoom: 16,
    textureOnViewport: subgraph.edges.length > FEW,
    pixelRatio: subgraph.edges.length > FEW ? 1 : "auto",
    boxSelectionEnabled: false,
    autoungrabify: true,
    style: styles(subgraph, legend, container.clientWidth),
    elements: [
      ...subgraph.nodes.map((node) => ({
        data: { id: nodeId(node.id), node: node.id, label: short(node.name), importance: importance(degrees.get(node.id) ?? 0, most) },
        position: position(node.id),
        classes: `${typeClass(node.type)} ${node.id === root ? "root" : ""}`,
      })),
      ...subgraph.edges.map((edge) => ({
        data: {
          id: edgeId(edge.id),
          edge: edge.id,
          source: nodeId(edge.source),
          target: nodeId(edge.target),
          type: edge.type,
          weight: edge.weight,
        },
        classes: ended(edge) ? "ended" : "",
      })),
    ],
  });
}

/** Hides what did not hold at an instant; the rest stays at its place. */
function hideAbsent(core: Core, subgraph: Subgraph, at: string): void {
  const moment = Date.parse(at);
  core.batch(() => {
    core.elements(".absent").removeClass("absent");
    if (at === "") return;
    for (const node of subgraph.nodes) if (!isValidAt(node, moment)) core.getElementById(nodeId(node.id)).addClass("absent");
    for (const edge of subgraph.edges) if (!isValidAt(edge, moment)) core.getElementById(edgeId(edge.id)).addClass("absent");
  });
}

/** Marks the nodes of a way, and the edges between each and the next. */
function mark(core: Core, hit: Neighbor | undefined): void {
  core.batch(() => {
    core.elements(".path").removeClass("path");
    for (const id of hit?.path.slice(1) ?? []) core.getElementById(nodeId(id)).addClass("path");
    for (const { source, target, type } of hit?.steps ?? []) {
      const between = core.getElementById(nodeId(source)).edgesWith(core.getElementById(nodeId(target)));
      between.filter((edge) => edge.data("type") === type).addClass("path");
    }
  });
}

export function Picture({
  subgraph,
  at,
  legend,
  root,
  hit,
  selectedEdge,
  name,
  onNode,
  onEdge,
}: {
  /** What has a place in the picture, at any time. */
  subgraph: Subgraph;
  /** An instant: what did not hold then is hidden. Empty: everything is drawn. */
  at: string;
  legend: readonly TypeColor[];
  root: string | undefined;
  hit: Neighbor | undefined;
  /** The id of an edge that is marked, or empty. */
  selectedEdge: string;
  /** What the picture shows, for those who do not see it. */
  name: string;
  onNode: (id: string) => void;
  onEdge: (id: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [core, setCore] = useState<Core>();
  const handlers = useRef({ onNode, onEdge });
  handlers.current = { onNode, onEdge };
  useEffect(() => {
    let current: Core | undefined;
    let gone = false;
    void drawGraph(box.current!, subgraph, legend, root).then((core) => {
      if (core === undefined || gone) return core?.destroy();
      current = core;
      core.on("tap", "node", (event) => handlers.current.onNode(event.target.data("node")));
      core.on("tap", "edge", (event) => handlers.current.onEdge(event.target.data("edge")));
      setCore(core);
    });
    const themes = new MutationObserver(() => current?.style(styles(subgraph, legend, box.current?.clientWidth ?? WIDE)));
    themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      gone = true;
      themes.disconnect();
      current?.destroy();
      setCore(undefined);
    };
  }, [subgraph, root]);
  useEffect(() => {
    if (core !== undefined && !core.destroyed()) mark(core, hit);
  }, [core, hit]);
  useEffect(() => {
    if (core !== undefined && !core.destroyed()) hideAbsent(core, subgraph, at);
  }, [core, at]);
  useEffect(() => {
    if (core === undefined || core.destroyed()) return;
    core.elements(".selected-edge").removeClass("selected-edge");
    if (selectedEdge !== "") core.getElementById(edgeId(selectedEdge)).addClass("selected-edge");
  }, [core, selectedEdge]);
  const zoom = (by: number) =>
    core?.zoom({ level: core.zoom() * by, renderedPosition: { x: core.width() / 2, y: core.height() / 2 } });
  return (
    <div class="graph-picture" id={OWN_STYLE}>
      <div ref={box} class="graph-canvas" role="img" aria-label={name} data-drawn={core !== undefined} />
      <div class="graph-zoom" role="group" aria-label="Zoom">
        <button class="btn compact" type="button" aria-label="Larger" onClick={() => zoom(1.4)}>
          +
        </button>
        <button class="btn compact" type="button" aria-label="Smaller" onClick={() => zoom(1 / 1.4)}>
          −
        </button>
        <button class="btn compact" type="button" onClick={() => core?.fit(undefined, PADDING)}>
          Fit
        </button>
      </div>
    </div>
  );
}

/** The graph as a picture, on canvases, as WebGL is slow where there is no GPU. The lists are its accessible form. */
import type { Core, StylesheetStyle } from "cytoscape";
import { useEffect, useRef, useState } from "preact/hooks";
import { placesOf, type Place } from "./layout";
import { ended, type Neighbor, type Shown } from "./state";

const FEW = 400;
const CLEAR = 70;
/** Pixels of width in which so many names are clear. */
const WIDE = 1200;
const LABEL = 32;
const PADDING = 20;
const MARGIN = { x: 150, y: 60 };
/** Cytoscape adds an inline style sheet, which the policy of the page refuses, unless an element has this id. */
const OWN_STYLE = "__________cytoscape_stylesheet";

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const short = (text: string): string => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

/** Sizes shrink with the number of nodes in the width, so that names appear as soon as there is room for them. */
const scaleOf = ({ nodes }: Shown, width: number): number =>
  Math.max(0.3, Math.min(1, Math.sqrt((CLEAR * Math.min(1, width / WIDE)) / nodes.length)));

function styles(subgraph: Shown, width: number): StylesheetStyle[] {
  const few = subgraph.edges.length <= FEW;
  const scale = scaleOf(subgraph, width);
  return [
    {
      selector: "node",
      style: {
        width: 12 * scale,
        height: 12 * scale,
        "background-color": color("p2"),
        label: "data(label)",
        color: color("ink2"),
        "font-size": 12 * scale,
        "font-family": getComputedStyle(document.body).fontFamily,
        "min-zoomed-font-size": few ? 9 : 14,
        "text-valign": "bottom",
        "text-margin-y": 4,
        "text-background-color": color("surface"),
        "text-background-opacity": few ? 0.85 : 0,
        "overlay-color": color("accent"),
      },
    },
    {
      selector: "edge",
      style: {
        width: few ? "mapData(weight, 0, 1, 0.6, 2.6)" : 0.5,
        "line-color": color("line2"),
        "line-opacity": few ? 1 : 0.2,
        "curve-style": few ? "bezier" : "haystack",
        "target-arrow-shape": "triangle",
        "target-arrow-color": color("line2"),
        "arrow-scale": 0.7,
        events: "no",
      },
    },
    { selector: "edge.ended", style: { "line-style": "dashed" } },
    { selector: "node.root", style: { width: 20 * scale, height: 20 * scale, "background-color": color("ink"), color: color("ink") } },
    { selector: "node.path", style: { "background-color": color("accent"), color: color("ink"), width: 16 * scale, height: 16 * scale } },
    {
      selector: "edge.path",
      style: { "line-color": color("accent"), "target-arrow-color": color("accent"), width: few ? 3 : 1.5, "z-index": 9 },
    },
  ] as StylesheetStyle[];
}

const nodeId = (id: string) => `node ${id}`;

/** The places of a small graph at once, those of a large one from a worker. */
async function layOut({ nodes, edges }: Shown, root: string | undefined): Promise<Map<string, Place>> {
  if (edges.length <= FEW) return placesOf(nodes, edges, root);
  const worker = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Map<string, Place>>) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ nodes, edges, root });
    });
  } finally {
    worker.terminate();
  }
}

/** Draws the graph, unless the page has left the container meanwhile: then nothing has the id of the style sheet. */
async function drawGraph(container: HTMLElement, subgraph: Shown, root: string | undefined): Promise<Core | undefined> {
  const [{ default: cytoscape }, places] = await Promise.all([import("cytoscape"), layOut(subgraph, root)]);
  if (!container.isConnected) return undefined;
  const extent = (axis: "x" | "y") => Math.max(1, ...[...places.values()].map((point) => Math.abs(point[axis])));
  const stretch = {
    x: Math.max(80, container.clientWidth - MARGIN.x) / 2 / extent("x"),
    y: Math.max(80, container.clientHeight - MARGIN.y) / 2 / extent("y"),
  };
  const position = (id: string) => {
    const position = places.get(id)!;
    return { x: position.x * stretch.x, y: position.y * stretch.y };
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
    style: styles(subgraph, container.clientWidth),
    elements: [
      ...subgraph.nodes.map((node) => ({
        data: { id: nodeId(node.id), node: node.id, label: short(node.name) },
        position: position(node.id),
        classes: node.id === root ? "root" : "",
      })),
      ...subgraph.edges.map((edge) => ({
        data: {
          id: `edge ${edge.id}`,
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
  root,
  hit,
  name,
  onNode,
}: {
  subgraph: Shown;
  root: string | undefined;
  hit: Neighbor | undefined;
  /** What the picture shows, for those who do not see it. */
  name: string;
  onNode: (id: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [core, setCore] = useState<Core>();
  const nodeHandler = useRef(onNode);
  nodeHandler.current = onNode;
  useEffect(() => {
    let current: Core | undefined;
    let gone = false;
    void drawGraph(box.current!, subgraph, root).then((core) => {
      if (core === undefined || gone) return core?.destroy();
      current = core;
      core.on("tap", "node", (event) => nodeHandler.current(event.target.data("node")));
      setCore(core);
    });
    const themes = new MutationObserver(() => current?.style(styles(subgraph, box.current?.clientWidth ?? WIDE)));
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

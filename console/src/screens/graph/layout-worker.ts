/** Lays out a graph beside the page, which answers meanwhile. */
import { placesOf } from "./layout";

addEventListener("message", ({ data: { nodes, edges, root } }) => postMessage(placesOf(nodes, edges, root)));

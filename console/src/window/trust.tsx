import type { Schemas } from "../api/client";

type Origin = Schemas["TraceEntry"]["origin"];
type Trust = Schemas["TraceEntry"]["trust"];

const WRITERS: Record<NonNullable<Origin>, string> = {
  user: "written by a person",
  agent: "written by a model",
  import: "imported",
  tool: "output of a tool",
  web: "from a web page",
};

/** Where a text comes from, and how far it is trusted. */
export function TrustLabel({ origin, trust }: { origin: Origin; trust: Trust }) {
  return (
    <span class={trust === "untrusted" ? "trust low" : "trust"}>
      <b>{trust}</b>
      <span class="dim">{WRITERS[origin ?? "user"]}</span>
    </span>
  );
}

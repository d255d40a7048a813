/** The way from a caption or an event to its second in the stream. */
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { useLoad } from "../../ui/load";
import { clockOf } from "./lines";
import { offset } from "./view";

const SHOWN_SECONDS = 60;

export function MomentLink({ document, collection }: { document: Schemas["Document"]; collection: string }) {
  const isStreamed = document.kind === "caption" || document.kind === "event";
  const stream = useLoad(
    async (signal) => (isStreamed ? await api.getStream({ stream: document.source, collection }, { signal }) : undefined),
    [document.source, collection],
  );
  if (stream.data === undefined || document.occurred === null) return null;
  const start = offset(stream.data, document.occurred.start) ?? 0;
  const view = { stream: document.source, from: start.toString(), to: (start + SHOWN_SECONDS).toString() };
  return (
    <p>
      <Link class="link" href={`/streams?${new URLSearchParams(view).toString()}`}>
        Open in the stream at {clockOf(stream.data, true)(start)}
      </Link>
    </p>
  );
}

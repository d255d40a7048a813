/** Streams over time: captions, events, entities, what a question finds, and alerts as they come. */
import { useState } from "preact/hooks";
import { api, take, type Schemas } from "../../api/client";
import { inCollections } from "../../api/lists";
import { Failure } from "../../ui/action";
import { useFields } from "../../ui/address";
import { AskForm } from "../../ui/controls";
import { counted } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { Alerts } from "./alerts";
import { Captions } from "./captions";
import { Lines, type Line } from "./lines";
import "./streams.css";

type Stream = Schemas["Stream"];
type Caption = Schemas["Caption"];

const FIRST = 1000;
const ENTITIES = 6;

interface Placed {
  collection: string;
  stream: Stream;
}

export default function Streams() {
  const [fields, setFields] = useFields();
  const streams = useLoad(allStreams, []);
  return (
    <Show of={streams} what="the streams">
      {(found) => {
        const chosen = found.find((each) => each.stream.source.id === fields.get("stream")) ?? found[0];
        if (chosen === undefined) {
          return (
            <State title="There are no streams yet">
              <p class="sub">This screen shows captions of videos and cameras over time. Add the captions of a file with:</p>
              <p class="mono">conspectus video add FILE</p>
            </State>
          );
        }
        return (
          <>
            <div class="chips" role="group" aria-label="Streams">
              {found.map((each) => (
                <button
                  key={each.stream.source.id}
                  class="chip"
                  type="button"
                  aria-pressed={each === chosen}
                  onClick={() => setFields({ stream: each.stream.source.id, query: undefined })}
                >
                  <span class="ellipsis">{each.stream.title || each.stream.source.name}</span>
                </button>
              ))}
            </div>
            <StreamView
              key={chosen.stream.source.id}
              placed={chosen}
              query={fields.get("query") ?? ""}
              onQuery={(query) => setFields({ query })}
            />
          </>
        );
      }}
    </Show>
  );
}

const allStreams = (signal: AbortSignal): Promise<Placed[]> =>
  inCollections(signal, async (collection) => {
    const streams = await take(api.GET("/api/v1/streams", { params: { query: { collection } }, signal }));
    return streams.map((stream) => ({ collection, stream }));
  });

interface Read {
  captions: Caption[];
  events: Schemas["EventSpan"][];
  entities: Line[];
  /** Whether there are more captions than are shown. */
  more: boolean;
}

async function read({ collection, stream }: Placed, signal: AbortSignal): Promise<Read> {
  const path = { stream: stream.source.id };
  const params = { path, query: { collection } };
  const [page, events, { entities }] = await Promise.all([
    take(
      api.GET("/api/v1/streams/{stream}/captions", { params: { path, query: { collection, limit: FIRST } }, signal }),
    ),
    take(api.GET("/api/v1/streams/{stream}/events", { params, signal })),
    take(api.GET("/api/v1/streams/{stream}/entities", { params, signal })),
  ]);
  const named = Object.keys(entities).slice(0, ENTITIES);
  const spans = await Promise.all(
    named.map((entity) =>
      take(api.GET("/api/v1/streams/{stream}/timeline", { params: { path, query: { collection, entity } }, signal })),
    ),
  );
  // The route can also answer lines of JSON, which nobody asked for here.
  const { captions, next } = page as Schemas["CaptionPage"];
  return {
    captions,
    more: next !== null,
    events,
    entities: named.map((name, at) => ({ name, spans: spans[at] ?? [] })),
  };
}

function StreamView({
  placed,
  query,
  onQuery,
}: {
  placed: Placed;
  query: string;
  onQuery: (query: string) => void;
}) {
  const { collection, stream } = placed;
  const [at, goTo] = useState<number>();
  const content = useLoad((signal) => read(placed, signal), []);
  const answer = useLoad(
    (signal) => {
      if (query === "") return undefined;
      const body = { query, collection, streams: [stream.source.id] } as Schemas["SearchStreamsBody"];
      return take(api.POST("/api/v1/streams/search", { body, signal }));
    },
    [query],
  );
  const found = query === "" ? undefined : answer.data;
  return (
    <Show of={content} what="the stream">
      {({ captions, events, entities, more }) => (
        <>
          <div class="head after">
            <div>
              <h1>{found === undefined ? summary(stream, more) : `${counted(found.moments.length, "moment")} for “${query}”`}</h1>
              {found?.plan["time_range"] !== undefined && (
                <p class="sub">The question asks for {found.plan["time_range"]}.</p>
              )}
            </div>
            <AskForm label="Question to the stream" placeholder="What happened after noon?" action="Ask" query={query} onAsk={onQuery} />
          </div>
          <Failure text={query === "" ? "" : (answer.error?.message ?? "")} />
          <div class="panel">
            <Lines
              stream={stream}
              captions={captions}
              lines={[...byType(events), ...entities]}
              moments={found?.moments ?? []}
              range={found?.ranges?.[0]}
              onTime={goTo}
            />
          </div>
          <div class="beside stream-content">
            <Captions captions={captions} moments={found?.moments ?? []} at={at} more={more} placed={placed} />
            <div>
              <Summary placed={placed} />
              <Alerts collection={collection} />
            </div>
          </div>
        </>
      )}
    </Show>
  );
}

function summary(stream: Stream, more: boolean): string {
  const name = stream.title || stream.source.name;
  if (stream.captions === 0 || stream.first_text === null) return `${name} has no captions yet`;
  const shown = more ? `The first ${FIRST} of ` : "";
  return `${shown}${counted(stream.captions, "caption")} of ${name}${stream.live ? ", live" : ""}`;
}

/** A line for each type of event. */
function byType(events: readonly Schemas["EventSpan"][]): Line[] {
  const lines = new Map<string, Line>();
  for (const event of events) {
    const line = lines.get(event.type) ?? { name: event.type, spans: [], event: true };
    line.spans.push({ ...event, label: event.descriptions.join("; ") });
    lines.set(event.type, line);
  }
  return [...lines.values()];
}

function Summary({ placed: { collection, stream } }: { placed: Placed }) {
  const summarized = useLoad(
    (signal) =>
      take(
        api.GET("/api/v1/streams/{stream}/summary", {
          params: { path: { stream: stream.source.id }, query: { collection } },
          signal,
        }),
      ),
    [],
  );
  return (
    <section class="panel" aria-label="Summary">
      <h2>Summary</h2>
      <Show of={summarized} what="the summary">
        {({ text, by }) => (
          <>
            <p class="small dim">{by === "extractive" ? "made of captions, without a language model" : `by ${by}`}</p>
            <p class="text small after">{text || "There is nothing to summarize."}</p>
          </>
        )}
      </Show>
    </section>
  );
}

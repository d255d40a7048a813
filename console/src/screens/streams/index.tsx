/** Streams over time: captions, events, entities, what a question finds, and alerts as they come. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { inCollections, readPages } from "../../api/lists";
import { Failure } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { AskForm } from "../../ui/controls";
import { counted, wholeNumber } from "../../ui/format";
import { Missing, Show, State, useLoad } from "../../ui/load";
import { Alerts } from "./alerts";
import { Captions } from "./captions";
import { clockOf, Lines, type Line } from "./lines";
import { Summary } from "./summary";
import { offset, viewOf, type View } from "./view";
import "./streams.css";

type Stream = Schemas["Stream"];
type Caption = Schemas["Caption"];

const FIELDS = { stream: textField(), query: textField(), from: textField(), to: textField() };
const PAGE = 1000;
const ENTITIES = 6;

interface Placed {
  collection: string;
  stream: Stream;
}

export default function Streams() {
  const [fields, setFields] = useAddress(FIELDS);
  const streams = useLoad(allStreams, []);
  return (
    <Show of={streams} what="the streams">
      {(choices) => {
        const requested = fields.stream || choices[0]?.stream.source.id;
        const selected = choices.find((choice) => choice.stream.source.id === requested);
        if (choices.length === 0) {
          return (
            <State title="There are no streams yet">
              <p class="sub">This screen shows captions of videos and cameras over time. Add the captions of a file with:</p>
              <p class="mono">conspectus streams import FILE</p>
            </State>
          );
        }
        return (
          <>
            <div class="chips" role="group" aria-label="Streams">
              {choices.map((choice) => (
                <button
                  key={choice.stream.source.id}
                  class="chip"
                  type="button"
                  aria-pressed={choice === selected}
                  onClick={() => setFields({ stream: choice.stream.source.id, query: undefined, from: undefined, to: undefined })}
                >
                  <span class="ellipsis">{choice.stream.title || choice.stream.source.name}</span>
                </button>
              ))}
            </div>
            {selected === undefined ? (
              <Missing />
            ) : (
              <StreamView
                key={selected.stream.source.id}
                placed={selected}
                query={fields.query}
                view={viewOf(fields.from, fields.to)}
                onQuery={(query) => setFields({ query })}
                onView={(view) => setFields({ from: view?.from.toString(), to: view?.to.toString() })}
              />
            )}
          </>
        );
      }}
    </Show>
  );
}

const allStreams = (signal: AbortSignal): Promise<Placed[]> =>
  inCollections(signal, async (collection) => {
    const streams = await api.listStreams({ collection }, { signal });
    return streams.map((stream) => ({ collection, stream }));
  });

interface Read {
  captions: Caption[];
  events: Schemas["EventSpan"][];
  entities: Line[];
  /** Whether there are more captions than are shown. */
  more: boolean;
}

/** What is in a stream or a part of it: the first captions, all events, and the entities that are there most often. */
async function read({ collection, stream }: Placed, view: View | undefined, count: number, signal: AbortSignal): Promise<Read> {
  const range = view !== undefined && { start: String(view.from), end: String(view.to) };
  const params = { stream: stream.source.id, collection, ...range };
  const [{ rows: captions, next }, events, { entities }] = await Promise.all([
    readPages(count, PAGE, async (limit, after) => {
      const page = await api.listCaptions({ ...params, limit, after }, { signal });
      return { rows: page.captions, next: page.next };
    }),
    api.listEvents(params, { signal }),
    api.countEntities(params, { signal }),
  ]);
  const named = Object.keys(entities).slice(0, ENTITIES);
  const spans = await Promise.all(
    named.map((entity) => api.entityTimeline({ ...params, entity }, { signal })),
  );
  return { captions, more: next !== null, events, entities: named.map((name, at) => ({ name, spans: spans[at] ?? [] })) };
}

function StreamView({
  placed,
  query,
  view,
  onQuery,
  onView,
}: {
  placed: Placed;
  query: string;
  view: View | undefined;
  onQuery: (query: string) => void;
  onView: (view: View | undefined) => void;
}) {
  const { collection, stream } = placed;
  const [at, goTo] = useState<number>();
  const [count, setCount] = useState(PAGE);
  const content = useLoad((signal) => read(placed, view, count, signal), [view?.from, view?.to, count]);
  const answer = useLoad(
    (signal) => {
      if (query === "") return undefined;
      const body = { query, collection, streams: [stream.source.id] };
      return api.searchStreams(body, { signal });
    },
    [query],
  );
  const matches = query === "" ? undefined : answer.data;
  return (
    <Show of={content} what="the stream">
      {({ captions, events, entities, more }) => (
        <>
          <div class="head after">
            <div>
              <h1>
                {matches === undefined
                  ? summary(stream, captions.length, more, view)
                  : `${counted(matches.moments.length, "moment")} for “${query}”`}
              </h1>
              {matches !== undefined && matches.ranges.length > 0 && (
                <p class="sub">The question asks for the time {matches.ranges.map(named(stream)).join(" and ")}.</p>
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
              moments={matches?.moments ?? []}
              ranges={matches?.ranges ?? []}
              view={view}
              onView={onView}
              onTime={goTo}
            />
          </div>
          <div class="beside stream-content">
            <Captions
              captions={captions}
              moments={matches?.moments ?? []}
              at={at}
              onMore={more ? () => setCount(count + PAGE) : undefined}
              placed={placed}
              isWhole={view === undefined}
            />
            <div>
              <Summary collection={collection} stream={stream} onTime={goTo} />
              <Alerts collection={collection} />
            </div>
          </div>
        </>
      )}
    </Show>
  );
}

function summary(stream: Stream, count: number, more: boolean, view: View | undefined): string {
  const name = `${stream.title || stream.source.name}${stream.live ? ", live" : ""}`;
  if (stream.captions === 0 || stream.first_text === null) return `${name} has no captions yet`;
  if (view === undefined) return `${more ? `The first ${wholeNumber(count)} of ` : ""}${counted(stream.captions, "caption")} of ${name}`;
  const clock = clockOf(stream, true);
  return `${more ? "The first " : ""}${counted(count, "caption")} of ${name} from ${clock(view.from)} to ${clock(view.to)}`;
}

/** A range on the clock of a stream; open ends are those of the stream. */
const named = (stream: Stream) => ({ start, end }: Schemas["StreamRange"]): string => {
  const clock = clockOf(stream);
  const [from, to] = [offset(stream, start), offset(stream, end)];
  return [from !== undefined && `from ${clock(from)}`, to !== undefined && `until ${clock(to)}`].filter(Boolean).join(" ");
};

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

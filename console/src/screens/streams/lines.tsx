import { useRef } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { useSize } from "../../ui/size";

type Caption = Schemas["Caption"];
type Moment = Schemas["Moment"];
type Stream = Schemas["Stream"];
type Range = Schemas["StreamRange"];

/** Spans of one event type or entity. Times are seconds on the clock of the stream. */
export interface Line {
  name: string;
  spans: { start: number; end: number; label?: string }[];
  /** Whether it is a type of event, and not an entity. */
  event?: boolean;
}

const NAMES = 150;
const DENSITY = 54;
const ROW = 24;
const FOOT = 24;
const BIN = 8;
const LETTER = 7;

/** The clock of a stream as text: wall time where it has one, otherwise time from its beginning. */
export function clockOf(stream: Stream): (seconds: number) => string {
  const begin = Date.parse(stream.start_time);
  const clock = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    timeZone: stream.wall ? stream.time_zone : "UTC",
  });
  if (stream.wall) return (seconds) => clock.format(new Date(begin + seconds * 1000));
  return (seconds) => new Date(Math.max(seconds, 0) * 1000).toISOString().slice(seconds >= 3600 ? 11 : 14, 19);
}

/** Captions as a density, events and entities as lines, over the time of the stream. */
export function Lines({
  stream,
  captions,
  lines,
  moments,
  range,
  onTime,
}: {
  stream: Stream;
  captions: readonly Caption[];
  lines: readonly Line[];
  /** What a question found. */
  moments: readonly Moment[];
  /** The part of the stream that the question names. */
  range: Range | undefined;
  onTime: (seconds: number) => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  const width = Math.max(useSize(element).width, 560);
  const last = Math.max(...captions.map((each) => each.end ?? 0), ...lines.flatMap((each) => each.spans.map((span) => span.end)), 1);
  const scale = (seconds: number) => NAMES + (Math.min(Math.max(seconds, 0), last) / last) * (width - NAMES - 8);
  const height = DENSITY + lines.length * ROW + FOOT;
  const shown = clockOf(stream);
  const offset = (instant: string | null) =>
    instant === null ? undefined : (Date.parse(instant) - Date.parse(stream.start_time)) / 1000;
  const asked = range === undefined ? undefined : [scale(offset(range.start) ?? 0), scale(offset(range.end) ?? last)];
  return (
    <div ref={element} class="lines" tabIndex={0} role="group" aria-label="The stream over time">
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={`${captions.length} captions and ${lines.length} lines from ${shown(0)} to ${shown(last)}`}
        onClick={(event) => {
          const left = event.currentTarget.getBoundingClientRect().left;
          onTime(((event.clientX - left - NAMES) / (width - NAMES - 8)) * last);
        }}
      >
        {asked !== undefined && (
          <rect class="asked" x={asked[0]} y="0" width={Math.max((asked[1] ?? 0) - (asked[0] ?? 0), 2)} height={height - FOOT} />
        )}
        <Density captions={captions} last={last} scale={scale} width={width} />
        <text x="0" y={DENSITY - 6} class="line-name">
          captions
        </text>
        {moments.map((each, at) => (
          <rect
            key={at}
            class="moment"
            x={scale(each.start)}
            y={DENSITY + 1}
            width={Math.max(scale(each.end) - scale(each.start), 3)}
            height="4"
          />
        ))}
        {lines.map((line, row) => (
          <LineRow key={line.name} line={line} top={DENSITY + 6 + row * ROW} width={width} scale={scale} />
        ))}
        {ticks(last, width).map((seconds) => (
          <text key={seconds} x={scale(seconds)} y={height - 4} class="tick">
            {shown(seconds)}
          </text>
        ))}
      </svg>
    </div>
  );
}

function Density({
  captions,
  last,
  scale,
  width,
}: {
  captions: readonly Caption[];
  last: number;
  scale: (seconds: number) => number;
  width: number;
}) {
  const bins = Array.from({ length: Math.max(Math.floor((width - NAMES) / BIN), 1) }, () => 0);
  for (const caption of captions) {
    const at = Math.min(Math.floor(((caption.start ?? 0) / last) * bins.length), bins.length - 1);
    bins[at] = (bins[at] ?? 0) + 1;
  }
  const most = Math.max(...bins, 1);
  return (
    <>
      {bins.map((count, at) => {
        const height = (count / most) * (DENSITY - 16);
        return (
          count > 0 && (
            <rect
              key={at}
              class="density"
              x={scale((at / bins.length) * last)}
              y={DENSITY - height}
              width={BIN - 1}
              height={height}
            />
          )
        );
      })}
    </>
  );
}

function LineRow({
  line,
  top,
  width,
  scale,
}: {
  line: Line;
  top: number;
  width: number;
  scale: (seconds: number) => number;
}) {
  const room = Math.floor(NAMES / LETTER) - 1;
  return (
    <g>
      <line class="rule" x1="0" x2={width} y1={top + 1} y2={top + 1} />
      <text x="0" y={top + 16} class="line-name">
        {line.name.length > room ? `${line.name.slice(0, room - 1)}…` : line.name}
      </text>
      {line.spans.map((span, at) => (
        <rect
          key={at}
          class={line.event === true ? "event" : "entity"}
          x={scale(span.start)}
          y={top + 7}
          width={Math.max(scale(span.end) - scale(span.start), 4)}
          height="11"
          rx="2"
        >
          {span.label !== undefined && <title>{span.label}</title>}
        </rect>
      ))}
    </g>
  );
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 604_800];
const LEAST = 72;

function ticks(last: number, width: number): number[] {
  const step = STEPS.find((each) => (each / last) * (width - NAMES) >= LEAST) ?? last;
  return Array.from({ length: Math.floor(last / step) + 1 }, (_, at) => at * step);
}

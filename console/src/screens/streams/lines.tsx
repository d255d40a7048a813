import { useRef, useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { useSize } from "../../ui/size";
import { moveView, offset, wholeOf, within, zoomView, type View } from "./view";

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
const END = 8;
/** Pixels that a time under the lines takes. */
const CLOCK = 44;
/** A pointer that moves less only points. */
const DRAGGED = 5;
/** What shows less than this many seconds has a clock with seconds. */
const FINE = 600;

/** The clock of a stream as text: wall time where it has one, otherwise time from its beginning. */
export function clockOf(stream: Stream, fine = false): (seconds: number) => string {
  const begin = Date.parse(stream.start_time);
  const clock = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(fine && { second: "2-digit" }),
    timeZone: stream.wall ? stream.time_zone : "UTC",
  });
  if (stream.wall) return (seconds) => clock.format(new Date(begin + seconds * 1000));
  return (seconds) => new Date(Math.max(seconds, 0) * 1000).toISOString().slice(seconds >= 3600 ? 11 : 14, 19);
}

/** Captions as a density, events and entities as lines, over the time of the stream or a part of it. */
export function Lines({
  stream,
  captions,
  lines,
  moments,
  ranges,
  view,
  onView,
  onTime,
}: {
  stream: Stream;
  captions: readonly Caption[];
  lines: readonly Line[];
  /** What a question found. */
  moments: readonly Moment[];
  /** The parts of the stream that the question names. */
  ranges: readonly Range[];
  /** What is shown, where it is not the whole stream. */
  view: View | undefined;
  onView: (view: View | undefined) => void;
  onTime: (seconds: number) => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  const width = Math.max(useSize(element).width, 560);
  const ends = [...captions.map((caption) => caption.end ?? 0), ...lines.flatMap((line) => line.spans.map((span) => span.end))];
  const fullView = wholeOf(stream, view === undefined ? Math.max(...ends, 0) : 0);
  const visible = view ?? fullView;
  const scale = scaleOf(visible, width);
  const height = DENSITY + lines.length * ROW + FOOT;
  const clock = clockOf(stream, visible.to - visible.from < FINE);
  const show = (next: View) => onView(within(next, fullView));
  const { dragged, handlers } = useDrag(visible, width, onTime, show);
  const band = (name: string, { from, to }: View) => (
    <rect class={name} x={scale(from)} y="0" width={Math.max(scale(to) - scale(from), 2)} height={height - FOOT} />
  );
  return (
    <>
      <div class="cluster lines-tools" role="group" aria-label="Time that is shown">
        <button class="btn compact" type="button" onClick={() => show(zoomView(visible, 0.5))}>
          Closer
        </button>
        <button class="btn compact" type="button" disabled={view === undefined} onClick={() => show(zoomView(visible, 2))}>
          Wider
        </button>
        <button class="btn compact" type="button" disabled={view === undefined} onClick={() => onView(undefined)}>
          Whole stream
        </button>
        <span class="small dim">
          {clock(visible.from)} to {clock(visible.to)}. Drag over the lines, or use + and −, ← and →, Home.
        </span>
      </div>
      <div
        ref={element}
        class="lines"
        tabIndex={0}
        role="group"
        aria-label="The stream over time"
        onKeyDown={(event) => {
          const next = viewForKey(event.key, visible, view !== undefined);
          if (next === undefined) return;
          event.preventDefault();
          show(next === "whole" ? fullView : next);
        }}
      >
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${captions.length} captions and ${lines.length} lines from ${clock(visible.from)} to ${clock(visible.to)}`}
          {...handlers}
        >
          {ranges.map((range) =>
            band("asked", { from: offset(stream, range.start) ?? fullView.from, to: offset(stream, range.end) ?? fullView.to }),
          )}
          {dragged !== undefined && band("dragged", dragged)}
          <Density captions={captions} visible={visible} scale={scale} width={width} />
          <text x="0" y={DENSITY - 6} class="line-name">
            captions
          </text>
          {moments.filter((moment) => isShown(moment, visible)).map((moment, at) => (
            <rect
              key={at}
              class="moment"
              x={scale(moment.start)}
              y={DENSITY + 1}
              width={Math.max(scale(moment.end) - scale(moment.start), 3)}
              height="4"
            />
          ))}
          {lines.map((line, row) => (
            <LineRow key={line.name} line={line} top={DENSITY + 6 + row * ROW} width={width} visible={visible} scale={scale} />
          ))}
          {ticks(visible, width, stream).map((seconds) => (
            <text
              key={seconds}
              x={scale(seconds)}
              y={height - 4}
              text-anchor={scale(seconds) > width - CLOCK ? "end" : "start"}
              class="tick"
            >
              {clock(seconds)}
            </text>
          ))}
        </svg>
      </div>
    </>
  );
}

type Scale = (seconds: number) => number;

function scaleOf({ from, to }: View, width: number): Scale {
  return (seconds) => NAMES + ((Math.min(Math.max(seconds, from), to) - from) / (to - from)) * (width - NAMES - END);
}

const isShown = (span: { start: number; end: number }, { from, to }: View): boolean => span.start <= to && span.end >= from;

function viewForKey(key: string, visible: View, part: boolean): View | "whole" | undefined {
  if (key === "+" || key === "=") return zoomView(visible, 0.5);
  if (!part) return undefined;
  if (key === "-") return zoomView(visible, 2);
  if (key === "ArrowLeft") return moveView(visible, -0.25);
  if (key === "ArrowRight") return moveView(visible, 0.25);
  return key === "Home" ? "whole" : undefined;
}

/** A pointer that is dragged shows what it went over; one that is not points at a time. Fingers scroll. */
function useDrag(visible: View, width: number, onTime: (seconds: number) => void, onShow: (view: View) => void) {
  const [drag, set] = useState<{ x: number; from: number; to: number }>();
  const at = (event: PointerEvent) => {
    const left = (event.currentTarget as Element).getBoundingClientRect().left;
    const share = Math.min(Math.max((event.clientX - left - NAMES) / (width - NAMES - END), 0), 1);
    return visible.from + share * (visible.to - visible.from);
  };
  const ordered = (one: number, other: number): View => ({ from: Math.min(one, other), to: Math.max(one, other) });
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      set({ x: event.clientX, from: at(event), to: at(event) });
    },
    onPointerMove: (event: PointerEvent) => {
      if (drag !== undefined) set({ ...drag, to: at(event) });
    },
    onPointerUp: (event: PointerEvent) => {
      if (drag !== undefined && Math.abs(event.clientX - drag.x) >= DRAGGED) onShow(ordered(drag.from, at(event)));
      else onTime(at(event));
      set(undefined);
    },
    onPointerCancel: () => set(undefined),
  };
  return { dragged: drag === undefined ? undefined : ordered(drag.from, drag.to), handlers };
}

function Density({
  captions,
  visible: { from, to },
  scale,
  width,
}: {
  captions: readonly Caption[];
  visible: View;
  scale: Scale;
  width: number;
}) {
  const bins = Array.from({ length: Math.max(Math.floor((width - NAMES) / BIN), 1) }, () => 0);
  for (const { start } of captions) {
    const share = ((start ?? from) - from) / (to - from);
    if (share < 0 || share > 1) continue;
    const at = Math.min(Math.floor(share * bins.length), bins.length - 1);
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
              x={scale(from + (at / bins.length) * (to - from))}
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
  visible,
  scale,
}: {
  line: Line;
  top: number;
  width: number;
  visible: View;
  scale: Scale;
}) {
  const room = Math.floor(NAMES / LETTER) - 1;
  return (
    <g>
      <line class="rule" x1="0" x2={width} y1={top + 1} y2={top + 1} />
      <text x="0" y={top + 16} class="line-name">
        {line.name.length > room ? `${line.name.slice(0, room - 1)}…` : line.name}
      </text>
      {line.spans.filter((span) => isShown(span, visible)).map((span, at) => (
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
const MIN_PIXELS = 72;

/** Round times of the clock that is shown. */
function ticks({ from, to }: View, width: number, stream: Stream): number[] {
  const step = STEPS.find((seconds) => (seconds / (to - from)) * (width - NAMES) >= MIN_PIXELS) ?? to - from;
  const begun = stream.wall ? Date.parse(stream.start_time) / 1000 : 0;
  const first = Math.ceil((begun + from) / step) * step - begun;
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => first + at * step);
}

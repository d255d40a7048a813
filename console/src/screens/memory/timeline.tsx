import { useRef, useState } from "preact/hooks";
import { day } from "../../ui/format";
import { useSize } from "../../ui/size";
import { knownAt, type Statement, type Lane } from "./lanes";

const ROW = 62;
const HEAD = 22;
/** From this height on the lanes scroll by themselves, and only those in view are drawn. */
const TALLEST = 640;
const MARGIN = 2;
const NAMES = 168;
/** Narrower lanes have half the place for names. */
const SLIM = 560;
const LETTER = 7;
const DAY = 86_400_000;

/** The instants between which the lanes are drawn. */
export interface Range {
  from: number;
  to: number;
}

export function rangeOf(lanes: readonly Lane[], now: number): Range {
  const begun = lanes.flatMap((lane) => lane.statements.flatMap((version) => [version.knownFrom, version.validFrom ?? version.knownFrom]));
  const from = Math.min(...begun, now - DAY);
  return { from: from - (now - from) * 0.04, to: now };
}

/** A lane for each statement: the dark line is when it held, the bar is when it was known. */
export function Timeline({ lanes, range, at }: { lanes: readonly Lane[]; range: Range; at: number }) {
  const element = useRef<HTMLDivElement>(null);
  const size = useSize(element);
  const [top, setTop] = useState(0);
  const slim = size.width > 0 && size.width < SLIM;
  const names = slim ? NAMES / 2 : NAMES;
  const width = Math.max(size.width, slim ? 420 : 620);
  const height = lanes.length * ROW;
  const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
  const last = Math.ceil((top + TALLEST) / ROW) + MARGIN;
  const scale = (instant: number) => {
    const share = (Math.min(Math.max(instant, range.from), range.to) - range.from) / (range.to - range.from);
    return names + share * (width - names);
  };
  const named = ticks(range, width - names);
  return (
    <div
      ref={element}
      class="timeline"
      tabIndex={0}
      role="group"
      aria-label="Memories over time"
      style={{ maxHeight: `${TALLEST}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <svg class="axis" width={width} height={HEAD} aria-hidden="true">
        {named.map(([instant, name]) => (
          <g key={instant}>
            <line x1={scale(instant)} x2={scale(instant)} y1="18" y2={HEAD} class="rule" />
            <text x={scale(instant) + 4} y="12">
              {name}
            </text>
          </g>
        ))}
        <line x1={scale(at)} x2={scale(at)} y1="18" y2={HEAD} class="now" />
        <circle cx={scale(at)} cy="18" r="4" class="now-dot" />
      </svg>
      <svg width={width} height={height} role="img" aria-label={`${lanes.length} lanes of memories; the list has their texts`}>
        <defs>
          <pattern id="late" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <line x1="0" x2="0" y1="0" y2="6" class="late-line" />
          </pattern>
        </defs>
        {named.map(([instant]) => (
          <line key={instant} x1={scale(instant)} x2={scale(instant)} y1="0" y2={height} class="rule" />
        ))}
        {lanes.slice(first, last).map((lane, row) => (
          <LaneRow key={lane.key} lane={lane} top={(first + row) * ROW} width={width} names={names} scale={scale} at={at} />
        ))}
        <line x1={scale(at)} x2={scale(at)} y1="0" y2={height} class="now" />
      </svg>
    </div>
  );
}

function LaneRow({
  lane,
  top,
  width,
  names,
  scale,
  at,
}: {
  lane: Lane;
  top: number;
  width: number;
  /** Pixels for its name. */
  names: number;
  scale: (instant: number) => number;
  at: number;
}) {
  if (lane.forgotten === true) return <Gone lane={lane} top={top} width={width} scale={scale} />;
  const current = knownAt(lane, at);
  const room = Math.floor((names - 12) / LETTER);
  return (
    <g>
      <line x1="0" x2={width} y1={top + 0.5} y2={top + 0.5} class="rule" />
      <text x="0" y={top + 28} class="lane-name">
        {lane.name.length > room ? `${lane.name.slice(0, room - 1)}…` : lane.name}
      </text>
      {lane.statements.map((statement, index) => (
        <Bar key={index} statement={statement} first={index === 0} top={top} scale={scale} current={statement === current} />
      ))}
    </g>
  );
}

/** The empty frame of a forgotten memory. */
function Gone({ lane, top, width, scale }: { lane: Lane; top: number; width: number; scale: (instant: number) => number }) {
  const { knownFrom = 0, knownUntil } = lane.statements[0] ?? {};
  const [left, right] = [scale(knownFrom), scale(knownUntil ?? Number.POSITIVE_INFINITY)];
  return (
    <g>
      <line x1="0" x2={width} y1={top + 0.5} y2={top + 0.5} class="rule" />
      <text x="0" y={top + 28}>
        {lane.name}
      </text>
      <rect x={left + 1} y={top + 12} width={Math.max(right - left - 2, 6)} height="26" rx="4" class="gone" />
    </g>
  );
}

function Bar({
  statement,
  first,
  top,
  scale,
  current,
}: {
  statement: Statement;
  first: boolean;
  top: number;
  scale: (instant: number) => number;
  current: boolean;
}) {
  const [left, right] = [scale(statement.knownFrom), scale(statement.knownUntil ?? Number.POSITIVE_INFINITY)];
  const width = Math.max(right - left - 2, 3);
  const room = Math.floor((width - 12) / LETTER);
  const label = statement.label.length > room ? `${statement.label.slice(0, Math.max(room - 1, 0))}…` : statement.label;
  const dated = statement.validFrom !== undefined || statement.validUntil !== undefined;
  const [holds, ends] = [scale(statement.validFrom ?? Number.NEGATIVE_INFINITY), scale(statement.validUntil ?? Number.POSITIVE_INFINITY)];
  const late = !first && statement.validFrom !== undefined && statement.knownFrom > statement.validFrom;
  return (
    <g>
      {dated && <line x1={holds + 1} x2={Math.max(ends - 1, holds + 2)} y1={top + 5} y2={top + 5} class="holds" />}
      <rect x={left + 1} y={top + 12} width={width} height="26" rx="4" class={current ? "known" : "known-then"}>
        <title>{statement.text}</title>
      </rect>
      {late && <rect x={holds} y={top + 12} width={Math.max(left - holds, 2)} height="26" class="late" />}
      {room > 3 && (
        <text x={left + 9} y={top + 29} class={current ? "label on" : "label"}>
          {label}
        </text>
      )}
    </g>
  );
}

const STEPS: readonly (readonly [number, Intl.DateTimeFormatOptions])[] = [
  [DAY, { day: "numeric", month: "short" }],
  [7 * DAY, { day: "numeric", month: "short" }],
  [30 * DAY, { month: "short" }],
  [91 * DAY, { month: "short", year: "2-digit" }],
  [365 * DAY, { year: "numeric" }],
];
const MIN_PIXELS = 64;

/** Instants with names that fit beside each other, at the beginnings of days, weeks, months or years. */
function ticks(range: Range, width: number): [number, string][] {
  const length = range.to - range.from;
  const [step, format] = STEPS.find(([duration]) => (duration / length) * width >= MIN_PIXELS) ?? [365 * DAY, { year: "numeric" }];
  const named = new Intl.DateTimeFormat("en-GB", { ...format, timeZone: "UTC" });
  const ticks: [number, string][] = [];
  const date = new Date(range.from);
  date.setUTCHours(0, 0, 0, 0);
  if (step >= 30 * DAY) date.setUTCDate(1);
  if (step >= 365 * DAY) date.setUTCMonth(0);
  while (date.getTime() < range.to) {
    if (date.getTime() >= range.from) ticks.push([date.getTime(), named.format(date)]);
    if (step >= 365 * DAY) date.setUTCFullYear(date.getUTCFullYear() + 1);
    else if (step >= 30 * DAY) date.setUTCMonth(date.getUTCMonth() + (step > 30 * DAY ? 3 : 1));
    else date.setUTCDate(date.getUTCDate() + step / DAY);
  }
  return ticks;
}

/** The slider under the lanes, as wide as the time that they show. */
export function Slider({ range, at, onChange }: { range: Range; at: number; onChange: (at: number) => void }) {
  return (
    <div class="time-slider">
      <input
        type="range"
        min={range.from}
        max={range.to}
        step={DAY / 24}
        value={at}
        aria-label="As of"
        aria-valuetext={day(new Date(at))}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}

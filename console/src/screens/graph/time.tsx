/** The time that a graph is shown at: a slider, which can play, and the same as a field. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { instant, localTime } from "../../ui/format";
import type { Subgraph } from "./state";

const MINUTE = 60_000;
/** Steps in which the whole time is played, and milliseconds of each. */
const STEPS = 24;
const STEP = 600;

export function Time({ subgraph, at, onAt }: { subgraph: Subgraph | undefined; at: string; onAt: (at: string) => void }) {
  const first = useMemo(() => firstTime(subgraph), [subgraph]);
  const [isPlaying, setPlaying] = useState(false);
  const now = Date.now();
  const moment = at === "" ? now : Date.parse(at);
  const choose = (time: number) => onAt(time >= now - MINUTE ? "" : new Date(time).toISOString());
  useEffect(() => {
    if (!isPlaying || first === undefined) return;
    const timer = setTimeout(() => {
      const next = moment + (now - first) / STEPS;
      if (next >= now) setPlaying(false);
      choose(next);
    }, STEP);
    return () => clearTimeout(timer);
  }, [isPlaying, at]);
  const play = () => {
    if (!isPlaying && at === "" && first !== undefined) choose(first);
    setPlaying(!isPlaying);
  };
  return (
    <div class="graph-time">
      <button class="btn" type="button" disabled={first === undefined} onClick={play}>
        {isPlaying ? "Pause" : "Play"}
      </button>
      <label>
        <span class="label">
          As of <b>{at === "" ? "now, with what has ended" : instant(at)}</b>
        </span>
        <input
          type="range"
          min={first ?? now - 1}
          max={now}
          value={moment}
          disabled={first === undefined}
          aria-valuetext={at === "" ? "now" : instant(at)}
          onChange={(event) => choose(Number(event.currentTarget.value))}
        />
      </label>
      <input
        class="field"
        type="datetime-local"
        aria-label="Time"
        value={at === "" ? "" : localTime(new Date(moment))}
        onChange={(event) => {
          const time = Date.parse(event.currentTarget.value);
          onAt(Number.isNaN(time) ? "" : new Date(time).toISOString());
        }}
      />
      {at !== "" && (
        <button class="btn" type="button" onClick={() => onAt("")}>
          Now
        </button>
      )}
    </div>
  );
}

/** The first time that a node or an edge has; undefined where none has one. */
function firstTime(subgraph: Subgraph | undefined): number | undefined {
  let first = Infinity;
  for (const element of [...(subgraph?.nodes ?? []), ...(subgraph?.edges ?? [])]) {
    for (const time of [element.valid_from, element.valid_until]) {
      if (time !== null) first = Math.min(first, Date.parse(time));
    }
  }
  return Number.isFinite(first) ? first : undefined;
}

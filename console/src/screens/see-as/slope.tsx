import type { Entry } from "../../window/anatomy";
import type { SourceNames } from "../../window/passage-panel";
import { Glyph, statusName } from "../../window/status";
import { lastHeading } from "../../window/window-map";

const ROW = 46;
const MAX_ROWS = 14;
const WIDTH = 100;

/** The same passages in both rankings, joined by a line; scores differ with what each person can see. */
export function Slope({
  ownEntries,
  other,
  hidden,
  sources,
}: {
  ownEntries: readonly Entry[];
  other: readonly Entry[];
  /** Ids of the sources that the other person has no role on. */
  hidden: ReadonlySet<string>;
  sources: SourceNames;
}) {
  const [left, right] = [ownEntries.slice(0, MAX_ROWS), other.slice(0, MAX_ROWS)];
  const places = new Map(right.map((entry, at) => [entry.chunk, at]));
  const middle = (at: number) => at * ROW + ROW / 2;
  return (
    <section>
      <h2>Where each passage went</h2>
      <p class="sub small">
        A line joins the same passage in both rankings. Scores are left out: words weigh differently in what each of them
        can see.
      </p>
      <div class="slope">
        <Ranking entries={left} sources={sources} hidden={hidden} label="Your ranking" />
        <svg
          class="slope-lines"
          width={WIDTH}
          height={Math.max(left.length, right.length) * ROW}
          aria-hidden="true"
        >
          {left.map((entry, at) => {
            const from = middle(at);
            const position = places.get(entry.chunk);
            if (hidden.has(entry.source ?? "")) return <path key={at} class="ends" d={`M8,${from} h20 M28,${from - 5} v10`} />;
            if (position === undefined) return null;
            const to = middle(position);
            return <path key={at} d={`M8,${from} C${WIDTH / 2},${from} ${WIDTH / 2},${to} ${WIDTH - 8},${to}`} />;
          })}
        </svg>
        <Ranking entries={right} sources={sources} hidden={new Set()} label="The other ranking" />
      </div>
    </section>
  );
}

function Ranking({
  entries,
  sources,
  hidden,
  label,
}: {
  entries: readonly Entry[];
  sources: SourceNames;
  hidden: ReadonlySet<string>;
  label: string;
}) {
  return (
    <ol aria-label={label}>
      {entries.map((entry) => {
        const lost = hidden.has(entry.source ?? "");
        return (
          <li key={entry.chunk}>
            <span class="dim small">{entry.rank}</span>
            <Glyph status={lost ? "no_role" : entry.status} />
            <span class="slope-title">
              <b class="ellipsis block-line">{lastHeading(entry.heading) || entry.title || entry.key}</b>
              <span class="tiny dim ellipsis block-line">
                {sources.get(entry.source ?? "") ?? ""} / {entry.key}
              </span>
            </span>
            {lost ? <span class="tag bad">no role</span> : <span class="small dim">{statusName(entry.status)}</span>}
          </li>
        );
      })}
    </ol>
  );
}

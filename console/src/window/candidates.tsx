import { useState } from "preact/hooks";
import { score, wholeNumber } from "../ui/format";
import { Virtual } from "../ui/virtual";
import { counts, isIn, type Entry, type Status } from "./anatomy";
import { placeOf, type SourceNames } from "./passage-panel";
import { ScoreBar } from "./score-bar";
import { Glyph, STATUSES, StatusLabel } from "./status";
import { lastHeading } from "./window-map";

type Order = "rank" | "status" | "tokens";

const ORDERS: Record<Order, (one: Entry, other: Entry) => number> = {
  rank: (one, other) => one.rank - other.rank,
  status: (one, other) => rankOf(one.status) - rankOf(other.status) || one.rank - other.rank,
  tokens: (one, other) => other.tokens - one.tokens || one.rank - other.rank,
};

const rankOf = (status: Status): number => STATUSES.findIndex(([name]) => name === status);

/** Every candidate and what became of it. */
export function Candidates({
  trace,
  sources,
  most,
  selected,
  onSelect,
  marks,
}: {
  trace: readonly Entry[];
  sources: SourceNames;
  most: number;
  /** The chunk of the chosen candidate. */
  selected: number | undefined;
  onSelect: (entry: Entry) => void;
  /** What a comparison says of a chunk. */
  marks?: ReadonlyMap<number, string> | undefined;
}) {
  const [statusFilter, show] = useState<Status | "all">("all");
  const [order, setOrder] = useState<Order>("rank");
  const rows = trace.filter((entry) => statusFilter === "all" || entry.status === statusFilter).sort(ORDERS[order]);
  return (
    <>
      <Chips trace={trace} statusFilter={statusFilter} onShow={show} />
      <Heads order={order} onOrder={setOrder} />
      <Virtual
        rows={rows}
        height={rowHeight()}
        label="Candidates"
        selected={rows.findIndex((entry) => entry.chunk === selected)}
      >
        {(entry) => (
          <Row
            entry={entry}
            sources={sources}
            most={most}
            selected={entry.chunk === selected}
            mark={marks?.get(entry.chunk)}
            onSelect={onSelect}
          />
        )}
      </Virtual>
    </>
  );
}

function Chips({
  trace,
  statusFilter,
  onShow,
}: {
  trace: readonly Entry[];
  statusFilter: Status | "all";
  onShow: (status: Status | "all") => void;
}) {
  const countByStatus = counts(trace);
  return (
    <div class="chips" role="group" aria-label="Show candidates by status">
      <button class="chip" type="button" aria-pressed={statusFilter === "all"} onClick={() => onShow("all")}>
        All <b>{wholeNumber(trace.length)}</b>
      </button>
      {STATUSES.map(([status, name]) => {
        const count = countByStatus.get(status) ?? 0;
        if (count === 0) return null;
        return (
          <button
            key={status}
            class="chip"
            type="button"
            aria-pressed={statusFilter === status}
            onClick={() => onShow(status)}
          >
            <Glyph status={status} />
            {name} <b>{wholeNumber(count)}</b>
          </button>
        );
      })}
    </div>
  );
}

function Heads({ order, onOrder }: { order: Order; onOrder: (order: Order) => void }) {
  const head = (key: Order, name: string) => (
    <button type="button" onClick={() => onOrder(key)} aria-pressed={order === key}>
      {name}
      {order === key && " ↓"}
    </button>
  );
  return (
    <div class="candidate candidate-heads">
      <span class="rank">{head("rank", "#")}</span>
      <span>{head("status", "Status")}</span>
      <span>Passage</span>
      <span>
        <i class="swatch part-words" />
        words <i class="swatch part-meaning" />
        meaning
      </span>
      <span class="num">{head("tokens", "Tokens")}</span>
      <span class="why">Why</span>
    </div>
  );
}

function Row({
  entry,
  sources,
  most,
  selected,
  mark,
  onSelect,
}: {
  entry: Entry;
  sources: SourceNames;
  most: number;
  selected: boolean;
  mark: string | undefined;
  onSelect: (entry: Entry) => void;
}) {
  return (
    <button class="candidate" type="button" aria-current={selected} onClick={() => onSelect(entry)}>
      <span class="rank dim small">{wholeNumber(entry.rank)}</span>
      <StatusLabel status={entry.status} />
      <span class="title">
        <b class="ellipsis">{lastHeading(entry.heading) || entry.title || entry.key}</b>
        <span class="tiny dim ellipsis block-line">
          {entry.trust === "untrusted" && <span class="tag">untrusted</span>} {placeOf(entry, sources)}
        </span>
      </span>
      <span class="scored">
        <ScoreBar parts={entry.parts} most={most} />
        <span class="small">{score(entry.score)}</span>
      </span>
      <span class="num tokens">{entry.tokens > 0 ? wholeNumber(entry.tokens) : isIn(entry) ? "0" : "–"}</span>
      <span class="why">
        {mark !== undefined && <span class="tag good">{mark}</span>} {entry.reason}
      </span>
    </button>
  );
}

/** The height of a row of the list in the style sheet, by the width of the page. */
function rowHeight(): number {
  if (innerWidth <= 820) return 130;
  return innerWidth <= 1180 ? 72 : 52;
}

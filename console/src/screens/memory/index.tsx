/** What an agent knows, what it knew at any time, and what was true then. */
import { useMemo, useState } from "preact/hooks";
import { Failure } from "../../ui/action";
import { useAddress } from "../../ui/address";
import { labelledField, textField } from "../../ui/address-fields";
import { Segmented } from "../../ui/controls";
import { day } from "../../ui/format";
import { Missing, Show, State, useLoad, type Loaded } from "../../ui/load";
import { FactMap } from "./fact-map";
import { RetentionPreview } from "./forget";
import {
  allScopes,
  filterLanes,
  findLanes,
  framesOf,
  outOfDate,
  readLanes,
  scopeName,
  withFrames,
  type Frame,
  type Lane,
  type Memory,
  type Read,
  type Receipt,
  type Scope,
} from "./lanes";
import { Forgotten, Memories } from "./list";
import { Recall, useSettled } from "./recall";
import { RetentionRules } from "./rules";
import { rangeOf, Slider, Timeline } from "./timeline";
import "./memory.css";

const VIEWS = [
  ["lanes", "Lanes"],
  ["map", "Map"],
] as const;
type View = (typeof VIEWS)[number][0];

const FIELDS = {
  scope: textField(),
  at: textField(),
  query: textField(),
  view: labelledField(VIEWS),
  filter: textField(),
};
const FIRST = 40;
/** From so many lanes on they can be filtered. */
const MANY = 8;

export default function MemoryScreen() {
  const [fields, setFields] = useAddress(FIELDS);
  const scopes = useLoad(allScopes, []);
  return (
    <Show of={scopes} what="the scopes">
      {(scopes) => {
        const key = (scope: Scope) => `${scope.collection}/${scopeName(scope)}`;
        const selected = fields.scope === "" ? scopes[0] : scopes.find((scope) => key(scope) === fields.scope);
        if (scopes.length === 0) {
          return (
            <State title="Nobody remembers anything yet">
              <p class="sub">This screen shows what an agent knows of a user, now and at any time. Add a memory with:</p>
              <p class="mono">conspectus memory add --user ann "I live in Hamburg."</p>
            </State>
          );
        }
        return (
          <>
            {(scopes.length > 1 || selected === undefined) && (
              <div class="chips" role="group" aria-label="Scopes">
                {scopes.map((scope) => (
                  <button
                    key={key(scope)}
                    class="chip"
                    type="button"
                    aria-pressed={scope === selected}
                    onClick={() => setFields({ scope: key(scope), at: undefined })}
                  >
                    <span class="ellipsis">{scopeName(scope)}</span>
                  </button>
                ))}
              </div>
            )}
            {selected === undefined ? (
              <Missing />
            ) : (
              <ScopeView
                key={key(selected)}
                scope={selected}
                at={fields.at}
                query={fields.query}
                onAt={(at) => setFields({ at: new Date(at).toISOString() })}
                onQuery={(query) => setFields({ query })}
                asMap={fields.view === "map"}
                onView={(view) => setFields({ view })}
                filter={fields.filter}
                onFilter={(filter) => setFields({ filter })}
              />
            )}
          </>
        );
      }}
    </Show>
  );
}

function ScopeView({
  scope,
  at: requestedAt,
  query,
  onAt,
  onQuery,
  asMap,
  onView,
  filter,
  onFilter,
}: {
  scope: Scope;
  /** An instant as in the address, or nothing for now. */
  at: string;
  query: string;
  onAt: (at: number) => void;
  onQuery: (query: string) => void;
  /** Whether facts are shown as a map, in place of lanes. */
  asMap: boolean;
  onView: (view: View) => void;
  /** Words that the lanes and memories that are shown have. */
  filter: string;
  onFilter: (filter: string) => void;
}) {
  const [limit, setLimit] = useState(FIRST);
  const now = useMemo(() => Date.now(), []);
  const read = useLoad((signal) => readLanes(scope, limit, signal), [limit]);
  const matches = useFound(scope, filter, read.data?.next != null);
  const [frames, frame] = useState<readonly Frame[]>([]);
  const at = Number.isNaN(Date.parse(requestedAt)) ? now : Date.parse(requestedAt);
  return (
    <Show of={read} what="the memories">
      {({ lanes: loaded, memories: newest, versions: histories, next }) => {
        const all = withFrames(loaded, frames);
        const range = rangeOf(all, now);
        const near = filterLanes(all, filter);
        const older = unread(matches.data, newest);
        const lanes = [...near, ...older.lanes];
        const visible = new Set(lanes.flatMap((lane) => lane.memories));
        const memories = [...newest, ...older.memories];
        const versions = new Map([...histories, ...older.versions]);
        const reload = () => {
          read.reload();
          matches.reload();
        };
        const forgotten = (receipt: Receipt) => {
          frame([...frames, ...framesOf(receipt, lanes)]);
          reload();
        };
        return (
          <>
            <div class="head">
              <div>
                <h1>
                  What {scopeName(scope, at === now ? "knows" : "knew")} {at === now ? "now" : `on ${day(new Date(at))}`}
                </h1>
                <p class="sub">
                  {asMap
                    ? "Facts as edges, each from when it was known here and held in the world."
                    : "Two clocks: the dark line is when a fact holds in the world; the green bar is when it was known here."}
                </p>
              </div>
            </div>
            <div class="beside">
              <div class="panel">
                <div class="cluster">
                  {memories.some((memory) => memory.fact !== null) && (
                    <Segmented label="View" options={VIEWS} value={asMap ? "map" : "lanes"} onChange={onView} />
                  )}
                  {(all.length > MANY || filter !== "") && (
                    <Filter
                      filter={filter}
                      shownCount={near.length}
                      all={all.length}
                      older={next === null ? undefined : older.lanes.length}
                      onFilter={onFilter}
                    />
                  )}
                </div>
                <Failure text={matches.error?.message ?? ""} />
                {asMap ? (
                  <FactMap
                    memories={memories.filter((memory) => visible.has(memory.id))}
                    at={at}
                    now={now}
                    scope={scope}
                    onChanged={reload}
                  />
                ) : (
                  <Timeline lanes={lanes} range={range} at={at} />
                )}
                <Slider range={range} at={at} onChange={onAt} />
                {!asMap && <Legend />}
                {next !== null && (
                  <p class="cluster after">
                    <button class="btn" type="button" onClick={() => setLimit(limit * 4)}>
                      Load older memories
                    </button>
                  </p>
                )}
              </div>
              <div>
                <OutOfDate lanes={all} at={at} />
                <Recall
                  scope={scope}
                  texts={new Map(memories.map((memory) => [memory.id, memory.text]))}
                  at={at}
                  query={query}
                  onQuery={onQuery}
                />
              </div>
            </div>
            <Memories
              memories={memories.filter((memory) => visible.has(memory.id))}
              versions={versions}
              lanes={lanes}
              at={at}
              scope={scope}
              onChanged={reload}
              onForgotten={forgotten}
            />
            <Forgotten frames={frames} />
            <div class="columns memory-rules">
              <RetentionPreview scope={scope} onForgotten={forgotten} />
              <RetentionRules scope={scope} onForgotten={forgotten} />
            </div>
          </>
        );
      }}
    </Show>
  );
}

/** What the server finds by the words of a filter, where not all memories are loaded. */
function useFound(scope: Scope, filter: string, more: boolean): Loaded<Read> {
  const words = useSettled(filter.trim());
  const isWanted = more && words !== "";
  const matches = useLoad((signal) => (isWanted ? findLanes(scope, words, signal) : undefined), [words, isWanted]);
  return isWanted && words === filter.trim() ? matches : { ...matches, data: undefined, error: undefined };
}

/** Of what was found, what is not loaded yet. */
function unread(matches: Read | undefined, loaded: readonly Memory[]): Read {
  const ids = new Set(loaded.map((memory) => memory.id));
  const { memories = [], versions = new Map(), lanes = [] } = matches ?? {};
  return {
    memories: memories.filter((memory) => !ids.has(memory.id)),
    versions,
    lanes: lanes.filter((lane) => !lane.memories.some((id) => ids.has(id))),
    next: null,
  };
}

function Filter({
  filter,
  shownCount,
  all,
  older,
  onFilter,
}: {
  filter: string;
  shownCount: number;
  all: number;
  /** How many more the server found; undefined where all are loaded. */
  older: number | undefined;
  onFilter: (filter: string) => void;
}) {
  return (
    <p class="cluster lanes-filter">
      <input
        class="field"
        type="search"
        aria-label="Filter the lanes"
        placeholder="Only with these words"
        value={filter}
        onInput={(event) => onFilter(event.currentTarget.value)}
      />
      <span class="small dim" role="status">
        {filter === "" ? `${all} lanes` : `${shownCount} of ${all} lanes`}
        {filter !== "" && older !== undefined && `, and ${older} that the server finds in older memories`}
      </span>
    </p>
  );
}

function Legend() {
  return (
    <p class="legend after">
      <span>
        <i class="holds-line" />
        true in the world
      </span>
      <span>
        <i class="swatch of-passage" />
        known then
      </span>
      <span>
        <i class="swatch known-swatch" />
        known at another time
      </span>
      <span>
        <i class="swatch late-swatch" />
        out of date
      </span>
      <span>
        <i class="swatch gone-swatch" />
        forgotten
      </span>
    </p>
  );
}

function OutOfDate({ lanes, at }: { lanes: readonly Lane[]; at: number }) {
  const pairs = lanes.flatMap((lane) => {
    const pair = outOfDate(lane, at);
    return pair === undefined ? [] : [{ name: lane.name, ...pair }];
  });
  if (pairs.length === 0) return null;
  return (
    <div class="out-of-date" role="status">
      {pairs.map(({ name, recorded, actual }) => (
        <p key={name}>
          <b>
            {name}: “{recorded.label}” was out of date.
          </b>{" "}
          “{actual.label}” held from {day(new Date(actual.validFrom ?? 0))}, but was known here only on{" "}
          {day(new Date(actual.knownFrom))}.
        </p>
      ))}
    </div>
  );
}

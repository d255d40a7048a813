/** Memories on two clocks: when they hold in the world, and when they were known here. */
import { api, type Schemas } from "../../api/client";
import { readPages, sourcesOf } from "../../api/lists";

const PAGE = 200;
const FOUND = 100;

export type Memory = Schemas["Memory"];
export type Receipt = Schemas["MemoryReceipt"];

export interface Scope {
  collection: string;
  user: string | null;
  agent: string | null;
  conversation: string | null;
}

/** One statement of a lane. Times are milliseconds; undefined ends are open. */
export interface Statement {
  id: string;
  label: string;
  text: string;
  knownFrom: number;
  knownUntil: number | undefined;
  validFrom: number | undefined;
  validUntil: number | undefined;
}

export interface Lane {
  /** What its statements have in common. */
  key: string;
  name: string;
  pinned: boolean;
  /** The ids of its memories. */
  memories: string[];
  statements: Statement[];
  /** Whether it is the empty frame of what was forgotten. */
  forgotten?: boolean;
}

/** What is left of a forgotten memory: when it was known and the receipt, and no word of it. */
export interface Frame {
  id: string;
  from: number;
  until: number;
  receipt: Receipt;
}

/** The scopes that have memories: a source is named by them, with each name encoded. */
export const allScopes = (signal: AbortSignal): Promise<Scope[]> => sourcesOf("memory", signal, scopeOf);

function scopeOf(collection: string, name: string): Scope {
  const [, ...names] = name.split("/");
  const [user, agent, conversation] = names.map((name) => (name === "" ? null : decodeURIComponent(name)));
  return { collection, user: user ?? null, agent: agent ?? null, conversation: conversation ?? null };
}

/** The scope in a few words; `verb` stands between who knows and what it is about. */
export function scopeName(scope: Scope, verb = ""): string {
  const named = [
    scope.agent ?? (verb === "" ? "" : "the store"),
    verb,
    scope.user && `about ${scope.user}`,
    scope.conversation && `in ${scope.conversation}`,
  ];
  return named.filter(Boolean).join(" ") || "everybody";
}

export interface Read {
  memories: Memory[];
  /** The versions of each memory, by its id, oldest first. */
  versions: ReadonlyMap<string, readonly Memory[]>;
  lanes: Lane[];
  next: string | null;
}

/** The newest memories of a scope with their versions. */
export async function readLanes(scope: Scope, limit: number, signal: AbortSignal): Promise<Read> {
  const { rows: memories, next } = await readPages(limit, PAGE, async (most, after) => {
    const page = await api.listMemories({ ...scope, limit: most, newest_first: true, after }, { signal });
    return { rows: page.memories, next: page.next };
  });
  return { ...(await withVersions(memories, scope, signal)), next };
}

/** The memories that the server finds by words, wherever they are. */
export async function findLanes(scope: Scope, query: string, signal: AbortSignal): Promise<Read> {
  const body = { ...scope, query, limit: FOUND, recent: 0, graph: null };
  const { memories } = await api.recall(body, { signal });
  return { ...(await withVersions(memories.map((memory) => memory.memory), scope, signal)), next: null };
}

async function withVersions(memories: Memory[], scope: Scope, signal: AbortSignal): Promise<Omit<Read, "next">> {
  const histories = await Promise.all(
    memories.map((memory) =>
      memory.document.updated === memory.document.recorded
        ? [memory]
        : api.listMemoryVersions({ memory: memory.id, ...scope }, { signal }),
    ),
  );
  const versions = new Map(memories.map((memory, at) => [memory.id, histories[at] ?? []]));
  return { memories, versions, lanes: lanesOf([...histories].reverse()) };
}

/** The frames of the memories that a receipt names. */
export function framesOf(receipt: Receipt, lanes: readonly Lane[]): Frame[] {
  const gone = new Set(receipt.ids);
  return lanes.flatMap((lane) =>
    lane.statements
      .filter((version) => gone.has(version.id))
      .map((version) => ({ id: version.id, from: version.knownFrom, until: Date.now(), receipt })),
  );
}

/** The lanes with the frames at the places that the memories had. */
export function withFrames(lanes: readonly Lane[], frames: readonly Frame[]): readonly Lane[] {
  if (frames.length === 0) return lanes;
  const empty = frames.map(({ id, from, until }, at): Lane => {
    const statement = { id, label: "", text: "", knownFrom: from, knownUntil: until, validFrom: undefined, validUntil: undefined };
    return { key: `forgotten ${at}`, name: "forgotten", pinned: false, memories: [], statements: [statement], forgotten: true };
  });
  return [...lanes, ...empty].sort((one, other) => begin(one) - begin(other));
}

/** The lanes that have all words of a filter, in their name or in a statement. */
export function filterLanes(lanes: readonly Lane[], filter: string): readonly Lane[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return lanes;
  return lanes.filter((lane) => {
    const text = [lane.name, ...lane.statements.map((version) => version.text)].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const time = (value: string | null): number | undefined => (value === null ? undefined : Date.parse(value));

/** Statements with the same subject and predicate share a lane; so do the versions of a memory. */
function lanesOf(histories: readonly (readonly Memory[])[]): Lane[] {
  const lanes = new Map<string, Lane>();
  for (const history of histories) {
    const last = history.at(-1);
    if (last === undefined) continue;
    const fact = last.fact;
    const key = fact === null ? last.id : `${fact.subject}\n${fact.predicate}`;
    const name = fact === null ? last.document.key || last.text : `${fact.subject} ${fact.predicate}`;
    const lane = lanes.get(key) ?? { key, name, pinned: false, memories: [], statements: [] };
    lane.pinned ||= last.pinned;
    lane.memories.push(last.id);
    lane.statements.push(...statementsOf(history));
    lanes.set(key, lane);
  }
  for (const lane of lanes.values()) lane.statements = finishStatements(lane.statements);
  return [...lanes.values()].sort((one, other) => begin(one) - begin(other));
}

const begin = (lane: Lane): number => lane.statements[0]?.knownFrom ?? 0;

/** The statements of a memory: versions that differ in their text. Later versions know more of its validity. */
function statementsOf(history: readonly Memory[]): Statement[] {
  const statements: Statement[] = [];
  for (const version of history) {
    const before = statements.at(-1);
    const statement = {
      id: version.id,
      label: version.fact?.object ?? version.text,
      text: version.text,
      knownFrom: Date.parse(version.known_from),
      knownUntil: time(version.known_until),
      validFrom: time(version.valid_from),
      validUntil: time(version.valid_until),
    };
    if (before?.text === statement.text) statements[statements.length - 1] = { ...statement, knownFrom: before.knownFrom };
    else statements.push(statement);
  }
  return statements;
}

/** In order of time; a statement ends where the next one of its lane begins. */
function finishStatements(statements: readonly Statement[]): Statement[] {
  const sorted = [...statements].sort((one, other) => one.knownFrom - other.knownFrom);
  return sorted.map((statement, at) => {
    const next = sorted[at + 1];
    if (next === undefined) return statement;
    return { ...statement, knownUntil: next.knownFrom, validUntil: statement.validUntil ?? next.validFrom };
  });
}

/** The statement of a lane that was known at an instant. */
export const knownAt = (lane: Lane, at: number): Statement | undefined =>
  lane.statements.find((version) => version.knownFrom <= at && at < (version.knownUntil ?? Number.POSITIVE_INFINITY));

/** What held in the world at an instant, but was not known here yet. */
export function outOfDate(lane: Lane, at: number): { recorded: Statement; actual: Statement } | undefined {
  const recorded = knownAt(lane, at);
  const actual = lane.statements.find(
    (version) => version.knownFrom > at && version.validFrom !== undefined && version.validFrom <= at,
  );
  return recorded === undefined || actual === undefined ? undefined : { recorded, actual };
}

/** A filter as conditions that a person can read and choose, and as the JSON that the API takes. */
import { localTime } from "../../ui/format";

export const FIELDS = [
  "source",
  "title",
  "key",
  "file",
  "folder",
  "kind",
  "author",
  "role",
  "trust",
  "thread",
  "parent",
  "document",
  "sequence",
  "position",
  "occurred",
  "recorded",
] as const;
/** Stands for a value of the metadata, whose key is written beside it. */
export const METADATA = "metadata";

const TESTS = {
  eq: "is",
  ne: "is not",
  in: "is one of",
  from: "is at least",
  to: "is below",
  exists: "has a value",
  missing: "has no value",
} as const;
export type Test = keyof typeof TESTS;

export interface Condition {
  field: string;
  /** The key in the metadata. */
  key: string;
  test: Test;
  value: string;
}

export interface Conditions {
  /** Whether one of them is enough. */
  any: boolean;
  rows: readonly Condition[];
}

export const NEW: Condition = { field: "kind", key: "", test: "eq", value: "" };

const TIMES = new Set(["occurred", "recorded"]);
const NUMBERS = new Set(["sequence", "position"]);
export const isTime = (field: string): boolean => TIMES.has(field);
export const needsValue = (test: Test): boolean => test !== "exists" && test !== "missing";

/** What can be asked of a field, with its words. */
export function testsOf(field: string): [Test, string][] {
  const all = Object.entries(TESTS) as [Test, string][];
  if (!isTime(field)) return all;
  return all.flatMap(([test, name]): [Test, string][] =>
    test === "from" ? [[test, "is from"]] : test === "to" ? [[test, "is before"]] : needsValue(test) ? [] : [[test, name]],
  );
}

type Json = Record<string, unknown>;

/** The JSON of a filter; conditions without a value are left out, and without any it is empty. */
export function filterOf({ any, rows }: Conditions): string {
  const parts = rows.flatMap((row) => partOf(row) ?? []);
  if (parts.length === 0) return "";
  return JSON.stringify(parts.length === 1 ? parts[0] : { [any ? "or" : "and"]: parts });
}

function partOf({ field: name, key, test, value }: Condition): Json | undefined {
  if (name === METADATA && key === "") return undefined;
  if (needsValue(test) && value.trim() === "") return undefined;
  const field = name !== METADATA ? name : /[.]/.test(key) ? [METADATA, key] : `${METADATA}.${key}`;
  if (test === "exists") return { field, exists: true };
  if (test === "missing") return { not: { field, exists: true } };
  if (isTime(name)) {
    const time = new Date(value).toISOString();
    return name === "occurred" ? { overlaps: { [test]: time } } : { field, [test]: { time } };
  }
  const typed = name === METADATA || NUMBERS.has(name) ? scalarOf : plainTextOf;
  if (test === "in") return { field, in: value.split(",").map((text) => typed(text.trim())) };
  if (test === "ne") return { not: { field, eq: typed(value) } };
  return { field, [test]: typed(value) };
}

/** A number, true or false where it can be read as one; quotes make a text of it. */
function scalarOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value === null || typeof value === "object" ? text : value;
  } catch {
    return text;
  }
}

/** The text of a field that is one: what is in quotes, or all of it. */
function plainTextOf(text: string): string {
  const scalar = scalarOf(text);
  return typeof scalar === "string" ? scalar : text;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return undefined;
  return scalarOf(value) === value ? value : JSON.stringify(value);
}

/** The conditions of a filter, or nothing where it is more than a list of conditions. */
export function conditionsOf(filter: string): Conditions | undefined {
  if (filter === "") return { any: false, rows: [] };
  let value: unknown;
  try {
    value = JSON.parse(filter);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const any = Array.isArray(value["or"]);
  const parts = only(value, "and") ?? only(value, "or") ?? [value];
  const rows = parts.map(rowOf);
  return rows.every((row) => row !== undefined) ? { any, rows } : undefined;
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

function only(value: Json, name: string): unknown[] | undefined {
  const inner = value[name];
  return Array.isArray(inner) && Object.keys(value).length === 1 ? inner : undefined;
}

function rowOf(part: unknown): Condition | undefined {
  if (!isObject(part)) return undefined;
  if (isObject(part["not"])) {
    const inner = rowOf(part["not"]);
    if (inner?.test === "eq") return { ...inner, test: "ne" };
    return inner?.test === "exists" ? { ...inner, test: "missing" } : undefined;
  }
  if (isObject(part["overlaps"])) return timeCondition({ field: "occurred", key: "" }, part["overlaps"]);
  const named = fieldOf(part["field"]);
  if (named === undefined) return undefined;
  const { field: _, ...rest } = part;
  if (isTime(named.field) && !("exists" in rest)) return timeCondition(named, rest);
  const [[test, value] = [], more] = Object.entries(rest);
  if (test === undefined || more !== undefined || !(test in TESTS)) return undefined;
  if (test === "exists") return { ...named, test, value: "" };
  const text = Array.isArray(value) ? listOf(value) : textOf(value);
  return text === undefined || Array.isArray(value) !== (test === "in") ? undefined : { ...named, test: test as Test, value: text };
}

function listOf(values: readonly unknown[]): string | undefined {
  const texts = values.map(textOf);
  return texts.every((text) => text !== undefined && !text.includes(",")) ? texts.join(", ") : undefined;
}

function timeCondition(named: { field: string; key: string }, bound: Json): Condition | undefined {
  const [[test, value] = [], more] = Object.entries(bound);
  const time = isObject(value) ? value["time"] : value;
  if ((test !== "from" && test !== "to") || more !== undefined || typeof time !== "string") return undefined;
  const moment = new Date(time);
  return Number.isNaN(moment.getTime()) ? undefined : { ...named, test, value: localTime(moment) };
}

function fieldOf(field: unknown): { field: string; key: string } | undefined {
  const steps = typeof field === "string" ? field.split(".") : field;
  if (!Array.isArray(steps)) return undefined;
  const [first, key, more] = steps as unknown[];
  if (first === METADATA) return typeof key === "string" && more === undefined ? { field: METADATA, key } : undefined;
  return key === undefined && FIELDS.some((field) => field === first) ? { field: String(first), key: "" } : undefined;
}

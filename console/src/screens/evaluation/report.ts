/** Reports of runs, and those of files of `conspectus eval … --json`, which are sent nowhere. */

import { percentile, resampledMeans } from "./bootstrap";

/** The share of each question, from 0 to 1, by measure. */
export type Measures = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Characters of a document, counted by code points. */
export interface Place {
  /** The document: its id, or its key where the report is a file. */
  document: string;
  /** What the document is called. */
  name: string;
  start: number;
  end: number;
}

export interface Span extends Place {
  text: string;
}

/** A question with its evidence, and the passages of its windows by budget. */
export interface Asked {
  query: string;
  evidence: readonly Span[];
  passages: ReadonlyMap<number, readonly Span[]>;
}

export interface Report {
  name: string;
  measures: Measures;
  /** A question of a kind with its windows, where the run kept them. */
  ask: (kind: string, id: string) => Promise<Asked | undefined>;
}

/** A mean in percent with its 95 % interval. */
export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

/** The mean share of questions, with the interval of a bootstrap. */
export function estimateOf(shares: ReadonlyMap<string, number>): Estimate {
  const points = [...shares.values()].map((share) => 100 * share);
  const means = resampledMeans(points);
  return { mean: mean(points), low: percentile(means, 2.5), high: percentile(means, 97.5) };
}

export interface Compared {
  first: number;
  second: number;
  /** Of the second less the first, in points of 100. */
  difference: number;
  low: number;
  high: number;
  questions: number;
}

const MAX_BYTES = 20 * 1024 * 1024;
const BY_QUESTION = "by_question";
const WINDOWS = "windows";

/** Reads a report. Throws Error with a reason that can be shown. */
export async function readReport(file: File): Promise<Report> {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} is larger than 20 MB.`);
  let value: unknown;
  try {
    value = JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is not JSON. Write one with conspectus eval … --json.`);
  }
  const measures = new Map<string, Map<string, number>>();
  collect(value, [], measures);
  if (measures.size === 0) throw new Error(`${file.name} has no figures by question (by_question).`);
  const windows = windowsOf(value);
  return { name: file.name.replace(/\.json$/, ""), measures, ask: async (kind, id) => windows.get(kind)?.get(id) };
}

function collect(value: unknown, above: readonly string[], measures: Map<string, Map<string, number>>): void {
  if (!isRecord(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name === WINDOWS) continue;
    if (name !== BY_QUESTION) collect(inner, [...above, name], measures);
    else if (isRecord(inner)) collectShares(inner, above, measures);
  }
}

function collectShares(questions: Record<string, unknown>, above: readonly string[], measures: Map<string, Map<string, number>>) {
  for (const [question, values] of Object.entries(questions)) {
    if (!isRecord(values)) continue;
    for (const [name, value] of Object.entries(values)) {
      if (typeof value !== "number") continue;
      const measure = [...above, name].join(".");
      const shares = measures.get(measure) ?? new Map<string, number>();
      shares.set(question, value);
      measures.set(measure, shares);
    }
  }
}

/** The windows of each kind of questions. What is not as `conspectus eval evidence --windows` writes it is left out. */
function windowsOf(report: unknown): Map<string, Map<string, Asked>> {
  const windowsByKind = new Map<string, Map<string, Asked>>();
  for (const [kind, value] of isRecord(report) ? Object.entries(report) : []) {
    const windows = isRecord(value) ? value[WINDOWS] : undefined;
    if (!isRecord(windows)) continue;
    const questions = Object.entries(windows).flatMap(([id, window]): [string, Asked][] =>
      isRecord(window) && isRecord(window["passages"]) && typeof window["query"] === "string"
        ? [[id, { query: window["query"], evidence: spansOf(window["evidence"]), passages: byBudget(window["passages"]) }]]
        : [],
    );
    windowsByKind.set(kind, new Map(questions));
  }
  return windowsByKind;
}

const byBudget = (passages: Record<string, unknown>): Map<number, Span[]> =>
  new Map(Object.entries(passages).map(([budget, spans]) => [Number(budget), spansOf(spans)]));

function spansOf(value: unknown): Span[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((candidate: unknown): Span[] => {
    if (!isRecord(candidate)) return [];
    const { key, text, start, end } = candidate;
    const isSpan = typeof key === "string" && typeof text === "string" && typeof start === "number" && typeof end === "number";
    return isSpan ? [{ document: key, name: key, text, start, end }] : [];
  });
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const overlaps = (one: Place, other: Place): boolean =>
  one.document === other.document && one.start < other.end && other.start < one.end;

/** Whether passages have every character of a span. */
export function isCovered(span: Place, passages: readonly Place[]): boolean {
  let reached = span.start;
  for (const passage of passages.filter((one) => overlaps(one, span)).sort((one, other) => one.start - other.start)) {
    if (passage.start <= reached) reached = Math.max(reached, passage.end);
  }
  return reached >= span.end;
}

const budgetOf = (measure: string): number => Number(measure.slice(measure.lastIndexOf(".") + 1));
const groupOf = (measure: string): string => measure.slice(0, Math.max(measure.lastIndexOf("."), 0));

/** The kinds of questions that were measured at several budgets. */
export const groupsOf = (report: Report): string[] => [
  ...new Set([...report.measures.keys()].filter((measure) => budgetOf(measure) > 0).map(groupOf)),
];

/** Budgets in tokens and the mean at each, in percent. */
export function curveOf(report: Report, group: string): { budget: number; measure: string; mean: number }[] {
  return [...report.measures]
    .filter(([measure]) => groupOf(measure) === group && budgetOf(measure) > 0)
    .map(([measure, shares]) => ({ budget: budgetOf(measure), measure, mean: 100 * mean([...shares.values()]) }))
    .sort((one, other) => one.budget - other.budget);
}

/** Both runs on the questions that they share, with the 95 % interval of a paired bootstrap. */
export function compare(first: ReadonlyMap<string, number>, second: ReadonlyMap<string, number>): Compared {
  const shared = [...first.keys()].filter((id) => second.has(id));
  const differences = shared.map((id) => 100 * ((second.get(id) ?? 0) - (first.get(id) ?? 0)));
  const means = resampledMeans(differences);
  return {
    first: 100 * mean(shared.map((id) => first.get(id) ?? 0)),
    second: 100 * mean(shared.map((id) => second.get(id) ?? 0)),
    difference: mean(differences),
    low: percentile(means, 2.5),
    high: percentile(means, 97.5),
    questions: shared.length,
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, number) => sum + number, 0) / (values.length || 1);

/** What a context window is made of, from the parts and the trace that the server answers. */
import type { Schemas } from "../api/client";
import { sliceLetters } from "../ui/format";

export type Window = Schemas["ContextWindow"];
export type Entry = Schemas["TraceEntry"];
export type Part = Schemas["WindowPart"];
export type Citation = Schemas["Citation"];
export type Status = Entry["status"];

/** A passage of the window: a citation's text, with the candidates that it was made from. */
export interface Passage {
  number: number;
  tokens: number;
  cut: boolean;
  text: string;
  citation: Citation;
  entries: Entry[];
}

export const IN_WINDOW: readonly Status[] = ["included", "truncated"];

export const isIn = (entry: Entry): boolean => IN_WINDOW.includes(entry.status);

/** The passages in reading order. */
export function passagesOf(window: Pick<Window, "text" | "parts" | "citations" | "trace">): Passage[] {
  const citations = new Map(window.citations.map((citation) => [citation.number, citation]));
  const passages: Passage[] = [];
  for (const part of window.parts) {
    const citation = citations.get(part.number ?? -1);
    if (part.kind !== "passage" || citation === undefined) continue;
    const entries = window.trace.filter((entry) => isIn(entry) && citation.chunks.includes(entry.chunk));
    passages.push({
      number: citation.number,
      tokens: part.tokens,
      cut: entries.some((entry) => entry.status === "truncated"),
      text: sliceLetters(window.text, part.start ?? 0, part.end ?? 0),
      citation,
      entries,
    });
  }
  return passages;
}

export type Share = "prompt" | "header" | "passage" | "free" | "reserved";

const SHARES: Record<Part["kind"], Share> = {
  system: "prompt",
  query: "prompt",
  header: "header",
  frame: "header",
  passage: "passage",
  free: "free",
  reserved: "reserved",
};

export const shareOf = (part: Part): Share => SHARES[part.kind];

/** The tokens of each share; they add up to the budget exactly. */
export function sharesOf(parts: readonly Part[]): Record<Share, number> {
  const sums: Record<Share, number> = { prompt: 0, header: 0, passage: 0, free: 0, reserved: 0 };
  for (const part of parts) sums[shareOf(part)] += part.tokens;
  return sums;
}

/** Candidates by status, in the order of the rank. */
export function counts(trace: readonly Entry[]): Map<Status, number> {
  const countByStatus = new Map<Status, number>();
  for (const entry of trace) countByStatus.set(entry.status, (countByStatus.get(entry.status) ?? 0) + 1);
  return countByStatus;
}

/** What a record was asked with, as the playground takes it. */
import type { Schemas } from "../../api/client";
import { localTime } from "../../ui/format";
import { settingsOf, type Settings } from "../playground/settings";
import type { AnswerRecord } from "./record";

/** The settings of the question; where a record has none, those that the playground begins with. */
export function settingsOfRecord({ summary, options }: AnswerRecord): Settings {
  const usual = settingsOf(new URLSearchParams());
  return {
    ...usual,
    query: summary.question,
    collection: summary.collection === "*" ? "" : summary.collection,
    maxTokens: options.max_tokens > 0 ? options.max_tokens : usual.maxTokens,
    reservedTokens: 0,
    filter: isEverything(options.filter) ? "" : JSON.stringify(options.filter),
    asOf: options.as_of === null ? "" : localTime(options.as_of),
    minSimilarity: options.min_similarity === null ? "" : String(options.min_similarity),
    rerank: options.rerank,
    profile: options.profile === "multiplicative" ? "multiplicative" : "default",
    minTrust: trustOf(options.min_trust),
  };
}

/** A filter without any condition. */
function isEverything(filter: unknown): boolean {
  const conditions = (filter as { and?: unknown }).and;
  return Array.isArray(conditions) && conditions.length === 0;
}

/** The places that a window must have to answer the question: those that were cited, or else all of the window. */
export function evidenceOf({ citations, cited }: AnswerRecord): Schemas["NewEvidence"][] {
  const places = cited.length > 0 ? citations.filter(({ number }) => cited.includes(number)) : citations;
  return places.map(({ document, start, end }) => ({ document, start, end }));
}

/** The lowest level of a hit; that of all texts is no limit. */
const trustOf = (level: AnswerRecord["options"]["min_trust"]): Settings["minTrust"] =>
  level === "standard" || level === "trusted" ? level : "any";

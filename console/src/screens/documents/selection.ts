/** Which documents of a collection are listed, and in which order: fields of the address, and their request. */
import type { Schemas } from "../../api/client";
import { choiceField, countField, textField, type Values } from "../../ui/address-fields";

export const STATES = ["", "pending", "embedded", "error", "unindexable"] as const;
export const SORTS = ["added", "-added", "-changed", "title", "-title", "-size", "size"] as const;

const MAX_DAYS = 36_500;

export const SELECTION = {
  source: textField(),
  /** A part of the title, or of the key with its folders and file name. */
  words: textField(),
  status: choiceField(STATES),
  media: textField(),
  /** Days since they were added; 0 for any time. */
  days: countField(MAX_DAYS),
  sort: choiceField(SORTS),
};

export type Selection = Values<typeof SELECTION>;

export const SORT_LABELS: Record<Selection["sort"], string> = {
  added: "Added, oldest first",
  "-added": "Added, newest first",
  "-changed": "Changed, newest first",
  title: "Title, A to Z",
  "-title": "Title, Z to A",
  "-size": "Size, largest first",
  size: "Size, smallest first",
};
export const STATE_LABELS: Record<Selection["status"], string> = {
  "": "Any state",
  pending: "Not embedded yet",
  embedded: "Embedded",
  error: "Failed",
  unindexable: "Not indexable",
};
export const DAY_LABELS: readonly (readonly [days: number, label: string])[] = [
  [0, "Any time"],
  [1, "Added in the last day"],
  [7, "Added in 7 days"],
  [30, "Added in 30 days"],
  [365, "Added in a year"],
];
const OFFICE = "application/vnd.openxmlformats-officedocument";
export const MEDIA_LABELS: readonly (readonly [type: string, label: string])[] = [
  ["", "Any type"],
  ["text/markdown", "Markdown"],
  ["text/plain", "Plain text"],
  ["text/html", "HTML"],
  ["application/pdf", "PDF"],
  [`${OFFICE}.wordprocessingml.document`, "Word"],
  ["text/csv", "CSV and Excel"],
  [`${OFFICE}.presentationml.presentation`, "PowerPoint"],
  ["message/rfc822", "E-mail"],
  ["application/json", "JSON"],
];

export interface Condition {
  [operator: string]: unknown;
}

const MS_OF_DAY = 86_400_000;

/** The filter of a selection; undefined where it admits all. `now` is in milliseconds. */
export function filterOf(selection: Selection, now: number): Condition | undefined {
  const { source, words, media, days } = selection;
  const part = words.trim();
  const conditions: Condition[] = [];
  if (source !== "") conditions.push({ field: "source", eq: source });
  if (part !== "") conditions.push({ or: ["title", "key"].map((field) => ({ field, contains: part })) });
  if (media !== "") conditions.push({ field: "metadata.media_type", eq: media });
  if (days > 0) {
    const since = new Date(now - days * MS_OF_DAY).toISOString();
    conditions.push({ field: "recorded", from: { time: since } });
  }
  return conditions.length > 1 ? { and: conditions } : conditions[0];
}

export const statusOf = ({ status }: Selection): Schemas["Document"]["status"] | undefined =>
  status === "" ? undefined : status;

/** What restricts a selection beyond its source: a chip each, with the change that removes it. */
export function restrictionsOf(selection: Selection): { label: string; without: Partial<Selection> }[] {
  const { words, media, days, status } = selection;
  const chips: { label: string; without: Partial<Selection> }[] = [];
  if (words.trim() !== "") chips.push({ label: `“${words.trim()}”`, without: { words: "" } });
  if (media !== "") chips.push({ label: labelOf(MEDIA_LABELS, media), without: { media: "" } });
  if (status !== "") chips.push({ label: STATE_LABELS[status], without: { status: "" } });
  if (days > 0) chips.push({ label: labelOf(DAY_LABELS, days), without: { days: 0 } });
  return chips;
}

/** The label of a value; an address may name others than the menu. */
export function labelOf<T extends string | number>(labels: readonly (readonly [T, string])[], value: T): string {
  const listed = labels.find(([candidate]) => candidate === value);
  if (listed !== undefined) return listed[1];
  return typeof value === "number" ? `Added in ${value} days` : value;
}

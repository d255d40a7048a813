/** Question sets in files, as `conspectus eval init` writes them. */
import type { Schemas } from "../../api/client";

export type NewQuestion = Schemas["NewQuestion"];

export const isSet = (file: File): boolean => file.name.endsWith(".jsonl");

/** The name of the set of a file. */
export const nameOf = (file: File): string => file.name.replace(/\.jsonl$/, "");

/** Reads `queries.jsonl` of a set. Throws Error with a reason that can be shown. */
export async function readSet(file: File): Promise<NewQuestion[]> {
  const lines = (await file.text()).split("\n").filter((line) => line.trim() !== "");
  const questions = lines.flatMap((line, at) => {
    let row: unknown;
    try {
      row = JSON.parse(line);
    } catch {
      throw new Error(`Line ${at + 1} of ${file.name} is not JSON.`);
    }
    return questionOf(row);
  });
  if (questions.length === 0) {
    throw new Error(`${file.name} has no questions with spans. Write a set with conspectus eval init.`);
  }
  return questions;
}

type Row = Record<string, unknown>;
const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null && !Array.isArray(value);

function questionOf(row: unknown): NewQuestion[] {
  if (!isRow(row) || !Array.isArray(row["spans"])) return [];
  const { id, text, doc } = row;
  const evidence = row["spans"].flatMap((span: unknown): Schemas["NewEvidence"][] => {
    if (!isRow(span)) return [];
    const document = doc ?? span["doc"] ?? span["document"];
    const { start, end } = span;
    const isComplete = typeof document === "string" && typeof start === "number" && typeof end === "number";
    return isComplete ? [{ document, start, end }] : [];
  });
  const isComplete = (typeof id === "string" || typeof id === "number") && typeof text === "string" && evidence.length > 0;
  return isComplete ? [{ key: String(id), query: text, evidence }] : [];
}

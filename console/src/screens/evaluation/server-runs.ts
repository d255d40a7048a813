/** Runs of this server as reports: their shares by question, and the windows of a question with their texts. */
import { api, type Schemas } from "../../api/client";
import { readPages } from "../../api/lists";
import type { Asked, Report, Span } from "./report";

export type Run = Schemas["Run"];

/** The kind of questions, as the command names those of a set. */
const KIND = "questions";
const PAGE = 100;
const TEXTS = 100;

/** The runs of a collection, oldest first. */
export async function listRuns(collection: string, signal: AbortSignal): Promise<Run[]> {
  const { rows } = await readPages(Infinity, PAGE, async (limit, after) => {
    const page = await api.listRuns({ collection, limit, after }, { signal });
    return { rows: page.runs, next: page.next };
  });
  return rows.reverse();
}

/** A run with the shares of its questions. */
export async function readRun(run: string, signal: AbortSignal): Promise<Report> {
  const result = await api.getRun({ run }, { signal });
  const measures = result.run.max_tokens.map((budget, at): [string, ReadonlyMap<string, number>] => [
    `${KIND}.${budget}`,
    new Map(result.questions.map(({ question, shares }) => [question, shares[at] ?? 0])),
  ]);
  return {
    name: result.run.name,
    measures: new Map(measures),
    ask: (_, question) => readQuestion(run, question),
  };
}

/** A question of a run with the texts of its evidence and of its windows. */
async function readQuestion(run: string, id: string): Promise<Asked> {
  const { question, windows } = await api.getRunQuestion({ run, question: id });
  const places = [...question.evidence, ...windows.flatMap(({ passages }) => passages)];
  const texts = await textsOf(places.map(({ document }) => document));
  const span = ({ document, key, title, start, end }: Schemas["Passage"]): Span => ({
    document,
    name: title || key,
    start,
    end,
    text: texts.get(document)?.slice(start, end).join("") ?? "",
  });
  return {
    query: question.query,
    evidence: question.evidence.map(span),
    passages: new Map(windows.map(({ max_tokens, passages }) => [max_tokens, passages.map(span)])),
  };
}

/** The letters of documents, by id. */
async function textsOf(documents: readonly string[]): Promise<Map<string, string[]>> {
  const unique = [...new Set(documents)];
  const letters = new Map<string, string[]>();
  for (let at = 0; at < unique.length; at += TEXTS) {
    const { texts } = await api.getTexts({ ids: unique.slice(at, at + TEXTS) });
    for (const [id, text] of Object.entries(texts)) letters.set(id, Array.from(text ?? ""));
  }
  return letters;
}

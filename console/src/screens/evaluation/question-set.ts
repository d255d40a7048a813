/** Question sets, as `conspectus eval init` writes them, and their runs on a collection of this server. */
import { api, type Schemas } from "../../api/client";
import { isCovered, type Asked, type Place, type Report, type Span } from "./report";

export interface Question {
  id: string;
  query: string;
  /** What answers it. */
  evidence: readonly Place[];
}

export interface QuestionSet {
  name: string;
  questions: readonly Question[];
}

/** How the windows of a run are built. */
export interface RunSettings {
  collection: string;
  retrievers: "both" | "keyword" | "vector";
  profile: "default" | "multiplicative";
}

export const BUDGETS = [128, 256, 512, 1024] as const;
/** The kind of questions, as the command names those of a set. */
const KIND = "questions";
const AT_ONCE = 4;
const PAGE = 1000;
const TEXTS = 100;

export const isSet = (file: File): boolean => file.name.endsWith(".jsonl");

/** Reads `queries.jsonl` of a set. Throws Error with a reason that can be shown. */
export async function readSet(file: File): Promise<QuestionSet> {
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
  return { name: file.name.replace(/\.jsonl$/, ""), questions };
}

type Row = Record<string, unknown>;
const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null && !Array.isArray(value);

function questionOf(row: unknown): Question[] {
  if (!isRow(row) || !Array.isArray(row["spans"])) return [];
  const { id, text, doc } = row;
  const evidence = row["spans"].flatMap((span: unknown): Place[] => {
    if (!isRow(span)) return [];
    const key = doc ?? span["doc"];
    const { start, end } = span;
    return typeof key === "string" && typeof start === "number" && typeof end === "number" ? [{ key, start, end }] : [];
  });
  const isComplete = (typeof id === "string" || typeof id === "number") && typeof text === "string" && evidence.length > 0;
  return isComplete ? [{ id: String(id), query: text, evidence }] : [];
}

/** A passage of a window, and the document that it is from. */
interface Cited extends Place {
  document: string;
}

/** Asks every question at every budget, and counts how much of the evidence is in the windows. */
export async function run(
  set: QuestionSet,
  settings: RunSettings,
  name: string,
  progress: (done: number) => void,
  signal: AbortSignal,
): Promise<{ report: Report; missing: number }> {
  const passagesByQuestion = new Map<string, ReadonlyMap<number, readonly Cited[]>>();
  const waiting = [...set.questions];
  const work = async () => {
    for (let question = waiting.shift(); question !== undefined; question = waiting.shift()) {
      const windows = new Map<number, readonly Cited[]>();
      for (const budget of BUDGETS) windows.set(budget, await cited(question, settings, budget, signal));
      passagesByQuestion.set(question.id, windows);
      progress(passagesByQuestion.size);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const ids = await idsOf(set, settings.collection, signal);
  const keys = new Set(set.questions.flatMap((question) => question.evidence.map((span) => span.key)));
  const texts = await textsOf([...ids.values(), ...documentsOf(passagesByQuestion)], signal);
  const answers = askedOf(set, passagesByQuestion, ids, texts);
  const report = { name, measures: measuresOf(set, passagesByQuestion), asked: new Map([[KIND, answers]]) };
  return { report, missing: keys.size - ids.size };
}

async function cited(question: Question, settings: RunSettings, budget: number, signal: AbortSignal): Promise<Cited[]> {
  const { collection, retrievers, profile } = settings;
  const body: Schemas["ContextBody"] = { query: question.query, collection, max_tokens: budget };
  if (retrievers !== "both") body.retrievers = [retrievers];
  if (profile !== "default") body.query_context = { profile };
  const { citations } = await api.context(body, { signal });
  return citations.map(({ key, document, start, end }) => ({ key, document, start, end }));
}

/** The ids of the documents that have evidence, by key. */
async function idsOf(set: QuestionSet, collection: string, signal: AbortSignal): Promise<Map<string, string>> {
  const keys = new Set(set.questions.flatMap((question) => question.evidence.map((span) => span.key)));
  const ids = new Map<string, string>();
  for (let after: string | null = null, more = true; more; more = after !== null && ids.size < keys.size) {
    const page: Schemas["Page"] = await api.listDocuments({ collection, limit: PAGE, after }, { signal });
    for (const document of page.documents) if (keys.has(document.key)) ids.set(document.key, document.id);
    after = page.next;
  }
  return ids;
}

const documentsOf = (passagesByQuestion: ReadonlyMap<string, ReadonlyMap<number, readonly Cited[]>>): string[] =>
  [...passagesByQuestion.values()].flatMap((windows) => [...windows.values()].flatMap((passages) => passages.map(({ document }) => document)));

/** The letters of documents, by id. */
async function textsOf(documents: readonly string[], signal: AbortSignal): Promise<Map<string, string[]>> {
  const unique = [...new Set(documents)];
  const letters = new Map<string, string[]>();
  for (let at = 0; at < unique.length; at += TEXTS) {
    const { texts } = await api.getTexts({ ids: unique.slice(at, at + TEXTS) }, { signal });
    for (const [id, text] of Object.entries(texts)) letters.set(id, Array.from(text ?? ""));
  }
  return letters;
}

function measuresOf(
  set: QuestionSet,
  passagesByQuestion: ReadonlyMap<string, ReadonlyMap<number, readonly Cited[]>>,
): Map<string, Map<string, number>> {
  return new Map(
    BUDGETS.map((budget) => {
      const shares = set.questions.map(({ id, evidence }): [string, number] => {
        const window = passagesByQuestion.get(id)?.get(budget) ?? [];
        return [id, evidence.filter((span) => isCovered(span, window)).length / evidence.length];
      });
      return [`${KIND}.${budget}`, new Map(shares)];
    }),
  );
}

/** Every question with the texts of its evidence and of its windows. */
function askedOf(
  set: QuestionSet,
  passagesByQuestion: ReadonlyMap<string, ReadonlyMap<number, readonly Cited[]>>,
  ids: ReadonlyMap<string, string>,
  texts: ReadonlyMap<string, readonly string[]>,
): Map<string, Asked> {
  const span = ({ key, start, end }: Place, document: string | undefined): Span => {
    const letters = texts.get(document ?? "");
    return { key, start, end, text: letters?.slice(start, end).join("") ?? `${key} is not in the collection` };
  };
  return new Map(
    set.questions.map(({ id, query, evidence }) => {
      const windows = [...(passagesByQuestion.get(id) ?? [])].map(
        ([budget, passages]) => [budget, passages.map((passage) => span(passage, passage.document))] as const,
      );
      const spans = evidence.map((evidenceSpan) => span(evidenceSpan, ids.get(evidenceSpan.key)));
      return [id, { query, evidence: spans, passages: new Map(windows) }];
    }),
  );
}

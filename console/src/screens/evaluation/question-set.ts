/** Question sets, as `conspectus eval init` writes them, and their runs on a collection of this server. */
import { api, type Schemas } from "../../api/client";
import { readPages } from "../../api/lists";
import { isId } from "../../ui/naming";
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
  /** Other fields of a request for a context window. */
  options: Record<string, unknown>;
}

/** The settings of a JSON object. Throws Error with a reason that can be shown. */
export function parseOptions(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch {
    throw new Error(`Other settings are not JSON. Write an object, such as {"rerank": true}.`);
  }
  if (!isRow(options)) throw new Error(`Other settings must be an object, such as {"rerank": true}.`);
  const fixed = ["query", "collection", "max_tokens"].find((name) => name in options);
  if (fixed !== undefined) throw new Error(`The run itself sets ${fixed}; leave it out of the other settings.`);
  return options;
}

export const BUDGETS = [128, 256, 512, 1024] as const;
/** The kind of questions, as the command names those of a set. */
const KIND = "questions";
const AT_ONCE = 4;
const PAGE = 1000;
const TEXTS = 100;
const NAMES = 100;

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
    const key = doc ?? span["doc"] ?? span["document"];
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
  const documents = await findEvidence(set, settings.collection, signal);
  const resolved = { ...set, questions: set.questions.map((question) => withKeys(question, documents)) };
  const passagesByQuestion = new Map<string, ReadonlyMap<number, readonly Cited[]>>();
  const waiting = [...resolved.questions];
  const cost = { windows: 0, tokens: 0, milliseconds: 0 };
  const started = performance.now();
  const work = async () => {
    for (let question = waiting.shift(); question !== undefined; question = waiting.shift()) {
      const windows = new Map<number, readonly Cited[]>();
      for (const budget of BUDGETS) {
        const { citations, tokens } = await ask(question, settings, budget, signal);
        windows.set(budget, citations.map(({ key, document, start, end }) => ({ key, document, start, end })));
        cost.windows += 1;
        cost.tokens += tokens;
      }
      passagesByQuestion.set(question.id, windows);
      progress(passagesByQuestion.size);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  cost.milliseconds = performance.now() - started;
  const ids = new Map(documents.map(({ id, key }) => [key, id]));
  const keys = new Set(resolved.questions.flatMap((question) => question.evidence.map((span) => span.key)));
  const texts = await textsOf([...ids.values(), ...documentsOf(passagesByQuestion)], signal);
  const answers = askedOf(resolved, passagesByQuestion, ids, texts);
  const report = { name, measures: measuresOf(resolved, passagesByQuestion), asked: new Map([[KIND, answers]]), cost };
  return { report, missing: [...keys].filter((key) => !ids.has(key)).length };
}

async function ask(
  question: Question,
  settings: RunSettings,
  budget: number,
  signal: AbortSignal,
): Promise<Schemas["ContextWindow"]> {
  const { collection, retrievers, profile, options } = settings;
  const body: Schemas["ContextBody"] = { ...options, query: question.query, collection, max_tokens: budget };
  if (retrievers !== "both") body.retrievers = [retrievers];
  if (profile !== "default") body.query_context = { ...body.query_context, profile };
  return api.context(body, { signal });
}

interface EvidenceDocument {
  id: string;
  key: string;
}

/** The documents that have evidence, which a set names by key or by id. */
async function findEvidence(set: QuestionSet, collection: string, signal: AbortSignal): Promise<EvidenceDocument[]> {
  const names = [...new Set(set.questions.flatMap((question) => question.evidence.map((span) => span.key)))];
  const documents: EvidenceDocument[] = [];
  for (let at = 0; at < names.length; at += NAMES) {
    const some = names.slice(at, at + NAMES);
    const conditions = [{ field: "key", in: some }, { field: "document", in: some.filter(isId) }];
    const filter = [JSON.stringify({ or: conditions })];
    const { rows } = await readPages(Infinity, PAGE, async (limit, after) => {
      const page = await api.listDocuments({ collection, filter, limit, after }, { signal });
      return { rows: page.documents, next: page.next };
    });
    documents.push(...rows);
  }
  return documents;
}

/** A question whose evidence names each document by its key. */
function withKeys(question: Question, documents: readonly EvidenceDocument[]): Question {
  const keys = new Map(documents.map(({ id, key }) => [id, key]));
  return { ...question, evidence: question.evidence.map((span) => ({ ...span, key: keys.get(span.key) ?? span.key })) };
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

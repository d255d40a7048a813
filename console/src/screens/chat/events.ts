/** An answer of the chat model as it comes: the events of POST /chat. */
import { Problem, type Schemas } from "../../api/client";

export type Source = Schemas["ChatSourceAnswer"];

export interface Answer {
  withContext: boolean;
  text: string;
  sources: Schemas["SourcesAnswer"] | undefined;
  citations: Schemas["CitationsAnswer"] | undefined;
  usage: Schemas["UsageAnswer"] | undefined;
  error: string;
  ended: boolean;
}

export const begun = (withContext: boolean): Answer => ({
  withContext,
  text: "",
  sources: undefined,
  citations: undefined,
  usage: undefined,
  error: "",
  ended: false,
});

interface Event {
  name: string;
  data: string;
}

const DONE = "[DONE]";

/** Asks, and tells of the answer whenever more of it is there. Throws Problem if the chat does not begin. */
export async function ask(
  body: Partial<Schemas["ChatBody"]>,
  answer: Answer,
  changed: (answer: Answer) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch("/api/v1/chat", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok || response.body === null) throw await problemOf(response);
  let current = answer;
  for await (const event of events(response.body)) {
    current = after(current, event);
    changed(current);
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const problem = (await response.json()) as Schemas["Problem"];
  return new Problem(response.status, problem.code, problem.detail, response.headers.get("X-Request-Id") ?? "");
}

/** The answer after one more event. */
function after(answer: Answer, { name, data }: Event): Answer {
  if (name === "" && data === DONE) return { ...answer, ended: true };
  if (name === "") return { ...answer, text: answer.text + data };
  const value: unknown = JSON.parse(data);
  if (name === "delta") return { ...answer, text: answer.text + (value as { text: string }).text };
  if (name === "sources") return { ...answer, sources: value as Answer["sources"] };
  if (name === "citations") return { ...answer, citations: value as Answer["citations"] };
  if (name === "usage") return { ...answer, usage: value as Answer["usage"] };
  if (name === "error") return { ...answer, error: (value as { message: string }).message };
  return answer;
}

/** Server-sent events of a body; comments are skipped. An EventSource cannot send a POST. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parsed(block);
      if (event !== undefined) yield event;
    }
  }
}

function parsed(block: string): Event | undefined {
  let name = "";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (line === "data:") data.push("");
  }
  return data.length === 0 ? undefined : { name, data: data.join("\n") };
}

export interface Piece {
  text: string;
  /** The numbers that it cites; undefined for plain text. */
  numbers?: number[];
}

const CITATION = /(\[\d+(?:\s*[,–-]\s*\d+)*\]|【\d+】)/;
const MAX_NUMBERS = 20;

/** The text of an answer, with its citations apart. */
export function pieces(text: string): Piece[] {
  return text
    .split(CITATION)
    .filter((each) => each !== "")
    .map((each) => (CITATION.test(each) ? { text: each, numbers: numbersIn(each) } : { text: each }));
}

function numbersIn(citation: string): number[] {
  const numbers: number[] = [];
  for (const [, first, last] of citation.matchAll(/(\d+)(?:\s*[–-]\s*(\d+))?/g)) {
    const end = Math.min(Number(last ?? first), Number(first) + MAX_NUMBERS);
    for (let number = Number(first); number <= end; number += 1) numbers.push(number);
  }
  return numbers;
}

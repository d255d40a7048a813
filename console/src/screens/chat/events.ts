/** An answer of the chat model as it comes: the events of POST /chat. */
import type { Arguments, ChatEvent, Schemas } from "@conspectus/client";
import { api } from "../../api/client";

export type Source = Schemas["ChatSource"];

export interface Answer {
  withContext: boolean;
  text: string;
  sources: Schemas["Sources"] | undefined;
  citations: Schemas["Citations"] | undefined;
  usage: Schemas["Usage"] | undefined;
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

/** Asks, and tells of the answer whenever more of it is there. Throws Problem if the chat does not begin. */
export async function ask(
  body: Arguments<"chat">,
  answer: Answer,
  changed: (answer: Answer) => void,
  signal: AbortSignal,
): Promise<void> {
  let current = answer;
  for await (const event of api.streamChat(body, { signal })) {
    current = after(current, event);
    changed(current);
  }
  changed({ ...current, ended: true });
}

/** The answer after one more event. */
function after(answer: Answer, { type, data }: ChatEvent): Answer {
  switch (type) {
    case "delta":
      return { ...answer, text: answer.text + data.text };
    case "error":
      return { ...answer, error: data.message };
    default:
      return { ...answer, [type]: data };
  }
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
    .filter((piece) => piece !== "")
    .map((piece) => (CITATION.test(piece) ? { text: piece, numbers: numbersIn(piece) } : { text: piece }));
}

function numbersIn(citation: string): number[] {
  const numbers: number[] = [];
  for (const [, first, last] of citation.matchAll(/(\d+)(?:\s*[–-]\s*(\d+))?/g)) {
    const end = Math.min(Number(last ?? first), Number(first) + MAX_NUMBERS);
    for (let number = Number(first); number <= end; number += 1) numbers.push(number);
  }
  return numbers;
}

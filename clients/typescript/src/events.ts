import { ProblemError, toUnreachable, type Problem } from "./problem.js";
import { waitForServer, type Transport } from "./request.js";
import { ROUTES } from "./routes.js";
import type { Arguments, CallOptions, Schemas } from "./types.js";

/** A part of an answer of the chat model. An `error` is the last: the text that came before it is not complete. */
export type ChatEvent =
  | { type: "delta"; data: { text: string } }
  | { type: "sources"; data: Schemas["Sources"] }
  | { type: "citations"; data: Schemas["Citations"] }
  | { type: "usage"; data: Schemas["Usage"] }
  | { type: "error"; data: Schemas["Failure"] };

interface ServerEvent {
  name: string;
  data: string;
  id: string;
}

const DONE = "[DONE]";
/** Connections in a row that may be lost before they bring an event. */
const MAX_LOST_CONNECTIONS = 3;
const PAUSE_MILLISECONDS = 250;
const NO_CONTENT = 204;

/** A caption as it was written; `sequence` grows, and is where to go on. */
export interface LiveCaption {
  sequence: number;
  caption: Schemas["Caption"];
}

/** How a subscription is made: `after` is the number of the last event that was read. */
export interface SubscribeOptions extends CallOptions {
  after?: number;
}

/** The events of an answer, also over several connections if one is lost. */
export async function* streamChatEvents(
  transport: Transport,
  args: Arguments<"chat">,
  options: CallOptions,
): AsyncGenerator<ChatEvent, void, undefined> {
  const open = (last: string) =>
    last === ""
      ? transport.open(ROUTES.chat, args, options)
      : transport.open(ROUTES.resumeChat, { stream: last.slice(0, last.lastIndexOf(":")) }, withLastEventId(last, options));
  for await (const { name, data } of readConnections(open, "", options)) {
    if (name === "message" && data === DONE) return;
    if (name === "message") yield { type: "delta", data: { text: data } };
    else yield { type: name, data: JSON.parse(data) } as ChatEvent;
  }
}

/** New items from now on, or after an event. Ends only when the caller stops, or with an error. */
export async function* subscribe<T>(
  transport: Transport,
  route: string,
  args: Readonly<Record<string, unknown>>,
  options: SubscribeOptions,
): AsyncGenerator<T, void, undefined> {
  const open = (last: string) => transport.open(route, args, last === "" ? options : withLastEventId(last, options));
  for await (const { name, data } of readConnections(open, String(options.after ?? ""), options)) {
    if (name === "error") throw new ProblemError(JSON.parse(data) as Problem);
    if (name !== "ready") yield JSON.parse(data) as T;
  }
}

const withLastEventId = (last: string, options: CallOptions): CallOptions => ({
  ...options,
  headers: { ...options.headers, "Last-Event-ID": last },
});

/** Events of one connection after another, until there are no more or the server refuses. */
async function* readConnections(
  open: (last: string) => Promise<Response>,
  last: string,
  { signal }: CallOptions,
): AsyncGenerator<ServerEvent, void, undefined> {
  for (let failures = 1; ; failures += 1) {
    try {
      const response = await open(last);
      if (response.status === NO_CONTENT) return;
      let hasEvents = false;
      for await (const event of readEvents(response, signal)) {
        hasEvents = true;
        last = event.id || last;
        if (event.name !== "ready") failures = 0;
        // What was received before the signal is not yielded after it.
        signal?.throwIfAborted();
        yield event;
      }
      if (!hasEvents || last === "") throw toUnreachable("The answer ended before its first event.");
      failures = 0;
    } catch (error) {
      if (!isLost(error) || last === "" || failures > MAX_LOST_CONNECTIONS) throw error;
    }
    await new Promise((resume) => setTimeout(resume, PAUSE_MILLISECONDS * Math.min(failures, MAX_LOST_CONNECTIONS)));
  }
}

const isLost = (error: unknown): boolean => error instanceof ProblemError && [0, 502, 503, 504].includes(error.status);

/** Server-sent events as in the HTML standard. An event without its final empty line is dropped. */
async function* readEvents(response: Response, signal: AbortSignal | null | undefined): AsyncGenerator<ServerEvent> {
  let [name, id] = ["", ""];
  let data: string[] = [];
  for await (const line of readLines(response, signal)) {
    const [, field, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (line === "") {
      if (data.length > 0) yield { name: name || "message", data: data.join("\n"), id };
      [name, data] = ["", []];
    } else if (field === "event") name = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

async function* readLines(response: Response, signal: AbortSignal | null | undefined): AsyncGenerator<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await waitForServer(signal, reader.read());
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A carriage return at the end may be half of a line break.
      const parts = rest.split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

import { readProblem, toUnreachable } from "./problem.js";
import type { CallOptions } from "./types.js";

/** How a client reaches its server. */
export interface ClientOptions {
  /** An API key (`csp_…`). In a browser, a page of the server itself has a session instead. */
  apiKey?: string;
  /** Milliseconds until a call rejects with a `TimeoutError`; a stream until it begins. 0 is no limit. */
  timeout?: number;
  /** Sends the requests, in place of the global `fetch`. */
  fetch?: typeof fetch;
}

export type Arguments = Readonly<Record<string, unknown>>;

const TIMEOUT_MILLISECONDS = 60_000;

/** Sends requests to one server. */
export class Transport {
  readonly #url: string;
  readonly #options: ClientOptions;

  constructor(url: string, options: ClientOptions) {
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  /** The body of the answer. Throws ProblemError for a refusal, and the reason of a signal. */
  call(route: string, args: Arguments, options: CallOptions): Promise<unknown> {
    return this.#withinTimeout(options, async (signal) => {
      const response = await this.#send(route, args, options, signal, "application/json");
      return readAnswer(response, signal);
    });
  }

  /** An answer whose body comes as events; `options.timeout` is for its beginning only. */
  open(route: string, args: Arguments, options: CallOptions): Promise<Response> {
    return this.#withinTimeout(options, (signal) => this.#send(route, args, options, signal, "text/event-stream"));
  }

  async #send(route: string, args: Arguments, options: CallOptions, signal: AbortSignal, accept: string): Promise<Response> {
    const { method, path, body } = buildRequest(route, args);
    const headers = new Headers({ Accept: accept, ...options.headers });
    if (typeof body === "string") headers.set("Content-Type", "application/json");
    if (options.idempotencyKey !== undefined) headers.set("Idempotency-Key", options.idempotencyKey);
    if (this.#options.apiKey !== undefined) headers.set("Authorization", `Bearer ${this.#options.apiKey}`);
    const send = this.#options.fetch ?? fetch;
    const response = await waitForServer(signal, send(this.#url + path, { method, headers, body: body ?? null, signal }));
    if (!response.ok) throw await readProblem(response);
    return response;
  }

  /** Does work with a signal that ends with that of the caller, or when the time is up. */
  async #withinTimeout<T>(options: CallOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const milliseconds = options.timeout ?? this.#options.timeout ?? TIMEOUT_MILLISECONDS;
    const limit = new AbortController();
    const abortLate = () => limit.abort(new DOMException(`no answer within ${milliseconds} ms`, "TimeoutError"));
    const timer = milliseconds > 0 ? setTimeout(abortLate, milliseconds) : undefined;
    try {
      return await work(options.signal ? AbortSignal.any([options.signal, limit.signal]) : limit.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** What a promise of the network brings. Throws the reason of the signal, or that the server does not answer. */
export async function waitForServer<T>(signal: AbortSignal | null | undefined, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal?.throwIfAborted();
    throw toUnreachable(error);
  }
}

async function readAnswer(response: Response, signal: AbortSignal): Promise<unknown> {
  const text = await waitForServer(signal, response.text());
  if (text === "") return undefined;
  return response.headers.get("Content-Type")?.includes("json") === true ? JSON.parse(text) : text;
}

interface BuiltRequest {
  method: string;
  path: string;
  body: string | FormData | undefined;
}

/** A request for `METHOD path?query,names`: what is in neither is the body, a form if there are files in it. */
function buildRequest(route: string, args: Arguments): BuiltRequest {
  const [method = "", target = ""] = route.split(" ");
  const [template = "", names = ""] = target.split("?");
  const query = new URLSearchParams();
  const fields = new Map(Object.entries(args).filter(([, value]) => value !== undefined));
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(name, takeField(fields, name)));
  for (const name of names.split(",")) {
    for (const member of [takeField(fields, name) ?? []].flat()) query.append(name, String(member));
  }
  const search = query.size > 0 ? `?${query}` : "";
  return { method, path: path + search, body: buildBody(method, fields) };
}

/** A part of a path. Those that an address cannot have would lead to another route. */
function encodeSegment(name: string, value: unknown): string {
  const text = String(value ?? "");
  if (["", ".", ".."].includes(text)) throw new TypeError(`${name} cannot be ${JSON.stringify(text)}`);
  return encodeURIComponent(text);
}

function takeField(fields: Map<string, unknown>, name: string): unknown {
  const value = fields.get(name);
  fields.delete(name);
  return value;
}

function buildBody(method: string, fields: ReadonlyMap<string, unknown>): string | FormData | undefined {
  if (method === "GET" || method === "DELETE") return undefined;
  const values = [...fields.values()].flat();
  if (!values.some((member) => member instanceof Blob)) return JSON.stringify(Object.fromEntries(fields));
  const form = new FormData();
  for (const [name, value] of fields) {
    for (const member of [value].flat()) form.append(name, member instanceof Blob ? member : String(member));
  }
  return form;
}

/** The client of the HTTP API, typed by the OpenAPI document of the server that it is built for. */
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export const api = createClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });

/** A problem document (RFC 9457) of the server, or that there was no answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly request: string,
  ) {
    super(detail);
  }

  /** Whether the thing does not exist or is not visible to this person; the API does not say which. */
  get hidden(): boolean {
    return this.status === 404;
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a successful answer. Throws Problem for any other. */
export async function take<T>(request: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await request;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server does not answer. Is it running?", "");
  }
  const { data, error, response } = answer;
  if (response.ok) return data as T;
  const problem = (typeof error === "object" && error !== null ? error : {}) as Record<string, unknown>;
  const detail = problem["detail"] ?? problem["title"] ?? `The server answered ${response.status}.`;
  throw new Problem(
    response.status,
    String(problem["code"] ?? response.status),
    String(detail),
    response.headers.get("X-Request-Id") ?? "",
  );
}

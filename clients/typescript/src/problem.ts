import type { Schemas } from "./types.js";

/** A problem document (RFC 9457): `code` is stable, and further fields depend on it. */
export type Problem = Schemas["Problem"];

/** The server refused a request, failed, or did not answer; then `status` is 0 and `code` is `unreachable`. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;
  /** The id of the request in the log of the server. */
  readonly requestId: string;

  constructor(problem: Problem, requestId = "", options?: ErrorOptions) {
    super(problem.detail || problem.title, options);
    this.problem = problem;
    this.requestId = requestId;
  }

  get status(): number {
    return this.problem.status;
  }

  get code(): string {
    return this.problem.code;
  }
}

/** The error that an answer stands for. What is no problem document comes from something before the server. */
export async function readProblem(response: Response): Promise<ProblemError> {
  const { status } = response;
  const text = await response.text();
  const detail = `The server answered ${status}.`;
  const unknown: Problem = { type: "about:blank", title: response.statusText, status, detail, code: String(status) };
  return new ProblemError({ ...unknown, ...parseObject(text) }, response.headers.get("X-Request-Id") ?? "");
}

/** The error of a connection that was refused or lost. */
export function toUnreachable(cause: unknown): ProblemError {
  const detail = "The server does not answer. Is it running?";
  const problem = { type: "about:blank", title: "Unreachable", status: 0, detail, code: "unreachable" };
  return new ProblemError(problem, "", { cause });
}

function parseObject(text: string): Partial<Problem> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Partial<Problem>) : {};
  } catch {
    return {};
  }
}

import type { components, operations } from "./schema.js";

/** The types of what the API takes and answers, by their names in the OpenAPI document. */
export type Schemas = components["schemas"];

type Body<C> = C extends { "application/json": infer T } ? T : C extends { "multipart/form-data": infer T } ? T : unknown;
type Stated<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>;
type PathOf<O> = O extends { parameters: { path: infer T } } ? T : unknown;
type QueryOf<O> = O extends { parameters: { query?: infer T } } ? Stated<T> : unknown;
type BodyOf<O> = O extends { requestBody: { content: infer C } } ? Body<C> : OptionalBody<O>;
type OptionalBody<O> = O extends { requestBody?: infer B } ? (NonNullable<B> extends { content: infer C } ? Body<C> : unknown) : unknown;
type Flat<T> = { [K in keyof T]: T[K] };

/** What an operation takes: the parts of its path, its query and the fields of its body, in one object. */
export type Arguments<K extends keyof operations> = Flat<PathOf<operations[K]> & QueryOf<operations[K]> & BodyOf<operations[K]>>;

type Streamed = "text/event-stream" | "application/x-ndjson";
type Content<R> = R extends { content: infer C } ? C[Exclude<keyof C, Streamed>] : undefined;

/** What an operation answers; undefined where the answer has no body. */
export type Result<K extends keyof operations> = operations[K] extends { responses: infer R }
  ? { [S in keyof R]: Content<R[S]> }[keyof R]
  : never;

/** How one request is sent. */
export interface CallOptions {
  /** Ends the request; the call rejects with the reason of the signal. */
  signal?: AbortSignal | null | undefined;
  /** Milliseconds until the call rejects with a `TimeoutError`, in place of those of the client. */
  timeout?: number;
  /** A write that is sent again with the same key is done once. */
  idempotencyKey?: string;
  headers?: Readonly<Record<string, string>>;
}

/** A method of the client. */
export type Call<K extends keyof operations> =
  {} extends Arguments<K>
    ? (args?: Arguments<K>, options?: CallOptions) => Promise<Result<K>>
    : (args: Arguments<K>, options?: CallOptions) => Promise<Result<K>>;

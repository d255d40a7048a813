/** What is loaded from the server, and its states: loading, failed, hidden, stale, there. */
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/client";
import { person } from "../session";

export interface Loaded<T> {
  data: T | undefined;
  error: Problem | undefined;
  /** Whether newer data is on its way; the old data stays until then. */
  busy: boolean;
  reload: () => void;
}

interface LoadState<T> extends Omit<Loaded<T>, "reload"> {
  /** The dependencies that the data were loaded for. */
  key: readonly unknown[];
}

const sameKey = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((part, at) => Object.is(part, other[at]));

/**
 * Loads when a dependency changes. `load` may return undefined where there is nothing to ask yet.
 * Older data stay while newer are loaded. Where that fails, only those that were loaded for the same dependencies do,
 * and none that were deleted, or may not be read any more.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T> | undefined,
  dependencies: readonly unknown[],
): Loaded<T> {
  const [{ key: _, ...state }, set] = useState<LoadState<T>>({ data: undefined, error: undefined, busy: false, key: [] });
  const [turn, again] = useState(0);
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    const controller = new AbortController();
    const request = current.current(controller.signal);
    if (request === undefined) return;
    set((before) => ({ ...before, busy: true }));
    request.then(
      (data) => {
        if (!controller.signal.aborted) set({ data, error: undefined, busy: false, key: dependencies });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const problem = asProblem(error);
        if (problem.status === 401) person.value = null;
        set((before) => {
          const isGone = problem.status === 403 || problem.status === 404;
          const data = !isGone && sameKey(before.key, dependencies) ? before.data : undefined;
          return { ...before, data, error: problem, busy: false };
        });
      },
    );
    return () => controller.abort();
  }, [...dependencies, turn]);
  return { ...state, reload: useCallback(() => again((count) => count + 1), []) };
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ type: "about:blank", title: "Error", status: 0, detail, code: "console_error" });
}

/** Shows what was loaded, or why there is nothing to show. */
export function Show<T>({
  of,
  what,
  children,
}: {
  of: Loaded<T>;
  /** What could not be loaded, for the error: "the documents". */
  what: string;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <>
      {of.error !== undefined && <Failed problem={of.error} what={what} retry={of.reload} />}
      {of.data !== undefined ? (
        <div class={of.busy ? "stale" : undefined} aria-busy={of.busy}>
          {children(of.data)}
        </div>
      ) : (
        of.error === undefined && <Skeleton />
      )}
    </>
  );
}

export function Failed({ problem, what, retry }: { problem: Problem; what: string; retry?: () => void }) {
  if (problem.status === 404) return <Missing />;
  return (
    <div class="state error" role="alert">
      <h1>Could not load {what}</h1>
      <p class="sub">{messageOf(problem)}</p>
      {problem.requestId !== "" && <p class="mono dim">request {problem.requestId}</p>}
      {retry !== undefined && (
        <button class="btn" type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Nothing has the name in the address. Whoever may see everything is not told of roles. */
export function Missing() {
  if (person.value?.owner === true) {
    return (
      <State title="Nothing has this address">
        <p class="sub">It was deleted or renamed, or the address has a mistake.</p>
      </State>
    );
  }
  return (
    <State title="Nothing here that you may see">
      <p class="sub">It does not exist, or nobody granted you a role on it.</p>
    </State>
  );
}

/** Why a request failed, to a person who knows nothing of its headers. */
export const messageOf = (problem: Problem): string =>
  problem.status === 401
    ? "You are logged out: the login ended, or its key was revoked. Copy what you wrote, and reload the page to log in."
    : problem.message;

export function State({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state" role="status">
      <h1>{title}</h1>
      {children}
    </div>
  );
}

/** Grey lines in the shape of what comes; nothing for the first moment, so that fast answers do not flash. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!isShown) return null;
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} style={{ width: `${92 - ((at * 37) % 40)}%` }} />
      ))}
    </div>
  );
}

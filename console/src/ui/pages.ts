/** A list that is read page by page as a person scrolls. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Rows } from "../api/lists";
import { asProblem, useLoad, type Loaded } from "./load";

export interface Paged<T> extends Loaded<readonly T[]> {
  /** Adds the next page to those that are there. */
  more: () => void;
  /** Whether there is a next page. */
  unread: boolean;
  /** Why the next page could not be read. */
  failure: string;
}

/** Reads the first page when a dependency changes; `more` reads the next one. */
export function usePages<T>(
  read: (after: string | null, signal?: AbortSignal) => Promise<Rows<T>>,
  dependencies: readonly unknown[],
): Paged<T> {
  const first = useLoad((signal) => read(null, signal), dependencies);
  const [later, add] = useState<{ to: Rows<T> | undefined; pages: readonly Rows<T>[] }>({ to: undefined, pages: [] });
  const [failure, fail] = useState("");
  const requested = useRef<string | null>(null);
  const pages = first.data === undefined ? [] : [first.data, ...(later.to === first.data ? later.pages : [])];
  const next = pages.at(-1)?.next ?? null;
  const more = async () => {
    if (next === null || requested.current === next || first.busy) return;
    requested.current = next;
    try {
      const page = await read(next);
      add((before) => ({ to: first.data, pages: [...(before.to === first.data ? before.pages : []), page] }));
      fail("");
    } catch (error) {
      fail(asProblem(error).message);
    }
    requested.current = null;
  };
  const rows = useMemo(() => pages.flatMap((page) => page.rows), [first.data, pages.length]);
  const data = first.data === undefined ? undefined : rows;
  return { ...first, data, more: () => void more(), unread: next !== null, failure };
}

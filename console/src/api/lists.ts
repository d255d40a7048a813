/** Lists that take several requests. */
import { api, Problem, type Schemas } from "./client";
import { person } from "../session";
import { ListCache } from "./list-cache";

const MS_OF_LIFE = 5_000;
const cache = new ListCache(MS_OF_LIFE);

/** The collections that the person may read, as they were some seconds ago at most. */
export const readCollections = (): Promise<Schemas["Collection"][]> =>
  cache.read(`collections of ${person.value?.id ?? ""}`, () => api.listCollections());

/** Forgets what was read, because something was changed. */
export const forgetLists = (): void => cache.forget();

export interface Rows<T> {
  rows: T[];
  /** The cursor of what follows; null at the end. */
  next: string | null;
}

/** The first `wanted` rows of a list that is read page by page. */
export async function readPages<T>(
  count: number,
  most: number,
  read: (limit: number, after: string | null) => Promise<Rows<T>>,
): Promise<Rows<T>> {
  const rows: T[] = [];
  let next: string | null = null;
  do {
    const page: Rows<T> = await read(Math.min(count - rows.length, most), next);
    rows.push(...page.rows);
    next = page.next;
  } while (next !== null && rows.length < count);
  return { rows, next };
}

/** What `read` finds in each collection that the person may see. */
export async function inCollections<T>(
  signal: AbortSignal,
  read: (collection: string) => Promise<readonly T[]>,
): Promise<T[]> {
  const collections = await readCollections();
  signal.throwIfAborted();
  return (await Promise.all(collections.map((collection) => read(collection.name)))).flat();
}

/** The sources of a kind in all collections, as `made` of each. */
export function sourcesOf<T>(
  kind: Schemas["Source"]["kind"],
  signal: AbortSignal,
  build: (collection: string, name: string) => T,
): Promise<T[]> {
  return inCollections(signal, async (collection) => {
    const sources = await api.listSources({ collection }, { signal });
    return sources.filter((source) => source.kind === kind).map((source) => build(collection, source.name));
  });
}

/** What a list brings, or nothing where it is refused or hidden. */
export async function ifAllowed<T>(list: Promise<T[]>): Promise<T[]> {
  try {
    return await list;
  } catch (error) {
    if (error instanceof Problem && [403, 404].includes(error.status)) return [];
    throw error;
  }
}

/** The collection that a screen begins with: the default one, which calls mean that name none, or else the first. */
export const usualOf = (names: readonly string[]): string | undefined =>
  names.find((name) => name === "default") ?? names[0];

import type { CallOptions } from "./types.js";

interface Page {
  next: string | null;
}

type ItemOf<P> = Extract<P[keyof P], readonly unknown[]>[number];

/**
 * Every item of a list that is read page by page; `args.limit` is the size of a page.
 *
 *     for await (const document of each(client.listDocuments, { collection: "notes" })) …
 */
export async function* each<A extends object, P extends Page>(
  list: (args: A, options?: CallOptions) => Promise<P>,
  args: A,
  options?: CallOptions,
): AsyncGenerator<ItemOf<P>, void, undefined> {
  for (let next: string | null = null, more = true; more; more = next !== null) {
    const page: P = await list(next === null ? args : { ...args, after: next }, options);
    yield* (Object.values(page).find(Array.isArray) ?? []) as ItemOf<P>[];
    next = page.next;
  }
}

import { api } from "../../api/client";

/** The filter of one source; none for all sources. */
export const only = (source: string) => (source === "" ? undefined : { field: "source", eq: source });

/** How many documents there are in a source, or in all. */
export async function countDocuments(
  collection: string,
  source: string,
  { status, signal }: { status?: "error" | "unindexable" | undefined; signal?: AbortSignal } = {},
): Promise<number> {
  const documentCount = await api.countDocuments({ collection, status, filter: only(source) ?? null }, { signal });
  return documentCount.count;
}

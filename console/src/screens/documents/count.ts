import { api, take } from "../../api/client";

/** The filter of one source; none for all sources. */
export const only = (source: string) => (source === "" ? undefined : { field: "source", eq: source });

/** How many documents there are in a source, or in all. */
export async function counting(collection: string, source: string, signal?: AbortSignal): Promise<number> {
  const params = { path: { collection } };
  const body = { filter: only(source) ?? null };
  const found = await take(
    api.POST("/api/v1/collections/{collection}/documents/count", { params, body, ...(signal && { signal }) }),
  );
  return found.count;
}

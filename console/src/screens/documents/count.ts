import { api } from "../../api/client";

/** How many documents there are in a source. */
export async function countDocuments(collection: string, source: string): Promise<number> {
  return (await api.countDocuments({ collection, filter: { field: "source", eq: source } })).count;
}

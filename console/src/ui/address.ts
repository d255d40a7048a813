/** The state of a screen in the query of its address, so that every view can be shared and reloaded. */
import { useLocation, useSearch } from "wouter-preact";

export type Fields = Record<string, string | undefined>;

/** The fields of the address, and a function that changes some; an undefined or empty one is removed. */
export function useFields(): [URLSearchParams, (changes: Fields) => void] {
  const search = new URLSearchParams(useSearch());
  const [path, go] = useLocation();
  const change = (changes: Fields) => {
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === "") search.delete(name);
      else search.set(name, value);
    }
    const query = search.toString();
    go(query === "" ? path : `${path}?${query}`, { replace: true });
  };
  return [search, change];
}

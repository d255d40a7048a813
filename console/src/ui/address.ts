/** The state of a screen in the query of its address, so that every view can be shared and reloaded. */
import { useLocation, useSearch } from "wouter-preact";
import { readFields, writeFields, type FieldSet, type Values } from "./address-fields";

export type Fields = Record<string, string | undefined>;

/** Fields whose change is a step that Back takes back: questions and what is looked at. Others replace the address. */
const STEPS: ReadonlySet<string> = new Set(["query", "collection", "graph", "node", "part", "person", "scope", "source"]);

/** The fields of the address, and a function that changes some; an undefined or empty one is removed. */
export function useFields(): [URLSearchParams, (changes: Fields) => void] {
  const search = new URLSearchParams(useSearch());
  const [path, go] = useLocation();
  const change = (changes: Fields) => {
    const isStep = Object.entries(changes).some(([name, value]) => STEPS.has(name) && (search.get(name) ?? "") !== (value ?? ""));
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined || value === "") search.delete(name);
      else search.set(name, value);
    }
    const query = search.toString();
    go(query === "" ? path : `${path}?${query}`, { replace: !isStep });
  };
  return [search, change];
}

/** The declared fields of the address with their types, and a function that changes some; undefined is the default. */
export function useAddress<S extends FieldSet>(fields: S): [Values<S>, (changes: Partial<Values<S>>) => void] {
  const [search, change] = useFields();
  return [readFields(fields, search), (changes) => change(writeFields(fields, changes))];
}

/** The options of a run, as the form has them. */

/** How the windows of a run are built. */
export interface RunSettings {
  retrievers: "both" | "keyword" | "vector";
  profile: "default" | "multiplicative";
  /** Other fields of a request for a context window, as JSON. */
  others: string;
}

const OF_THE_SET = ["query", "collection", "max_tokens", "name"];

/** The fields of the request. Throws Error with a reason that can be shown. */
export function optionsOf({ retrievers, profile, others }: RunSettings): Record<string, unknown> {
  const options = parseOptions(others);
  if (retrievers !== "both") options["retrievers"] = [retrievers];
  if (profile !== "default") options["query_context"] = { ...(options["query_context"] as object), profile };
  return options;
}

function parseOptions(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch {
    throw new Error(`Other settings are not JSON. Write an object, such as {"rerank": true}.`);
  }
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new Error(`Other settings must be an object, such as {"rerank": true}.`);
  }
  const fixed = OF_THE_SET.find((name) => name in options);
  if (fixed !== undefined) throw new Error(`The run itself sets ${fixed}; leave it out of the other settings.`);
  return { ...options };
}

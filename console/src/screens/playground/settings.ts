/** The question and its options, as they are in the address and as the API takes them. */
import type { Schemas } from "../../api/client";
import type { Fields } from "../../ui/address";
import { DEFAULT_BUDGET, usualReserve } from "./budget";

export type Body = Schemas["ExplainBody"];
export type Retrievers = "both" | "keyword" | "vector";
export type Profile = "default" | "multiplicative";
export type MinTrust = "any" | "standard" | "trusted";

export interface Settings {
  query: string;
  collection: string;
  maxTokens: number;
  reservedTokens: number;
  system: string;
  filter: string;
  asOf: string;
  minSimilarity: string;
  retrievers: Retrievers;
  rerank: boolean;
  /** How the parts of a score are joined. */
  profile: Profile;
  minTrust: MinTrust;
  /** The questions before, if this one goes on with their windows. */
  after: readonly string[];
  /** Whether the next question goes on with this window. */
  followUp: boolean;
}


export function settingsOf(fields: URLSearchParams): Settings {
  const number = (name: string, otherwise: number) => {
    const value = Number.parseInt(fields.get(name) ?? "", 10);
    return Number.isFinite(value) && value >= 0 ? value : otherwise;
  };
  const retrievers = fields.get("retrievers");
  const minTrust = fields.get("min_trust");
  const maxTokens = number("max_tokens", DEFAULT_BUDGET);
  return {
    query: fields.get("query") ?? "",
    collection: fields.get("collection") ?? "",
    maxTokens,
    reservedTokens: number("reserved_tokens", usualReserve(maxTokens)),
    system: fields.get("system") ?? "",
    filter: fields.get("filter") ?? "",
    asOf: fields.get("as_of") ?? "",
    minSimilarity: fields.get("min_similarity") ?? "",
    retrievers: retrievers === "keyword" || retrievers === "vector" ? retrievers : "both",
    rerank: fields.get("rerank") !== "no",
    profile: fields.get("profile") === "multiplicative" ? "multiplicative" : "default",
    minTrust: minTrust === "standard" || minTrust === "trusted" ? minTrust : "any",
    after: (fields.get("after") ?? "").split("\n").filter((line) => line !== ""),
    followUp: fields.get("follow_up") === "yes",
  };
}

export function fieldsOf(settings: Partial<Settings>): Fields {
  const text = (value: number | undefined, usual: number) =>
    value === undefined || value === usual ? undefined : String(value);
  const fields: Fields = {};
  if ("query" in settings) fields["query"] = settings.query;
  if ("collection" in settings) fields["collection"] = settings.collection;
  if ("maxTokens" in settings) fields["max_tokens"] = text(settings.maxTokens, DEFAULT_BUDGET);
  if ("reservedTokens" in settings) fields["reserved_tokens"] = text(settings.reservedTokens, usualReserve(settings.maxTokens ?? NaN));
  if ("system" in settings) fields["system"] = settings.system;
  if ("filter" in settings) fields["filter"] = settings.filter;
  if ("asOf" in settings) fields["as_of"] = settings.asOf;
  if ("minSimilarity" in settings) fields["min_similarity"] = settings.minSimilarity;
  if ("retrievers" in settings) fields["retrievers"] = settings.retrievers === "both" ? undefined : settings.retrievers;
  if ("rerank" in settings) fields["rerank"] = settings.rerank === false ? "no" : undefined;
  if ("profile" in settings) fields["profile"] = settings.profile === "default" ? undefined : settings.profile;
  if ("minTrust" in settings) fields["min_trust"] = settings.minTrust === "any" ? undefined : settings.minTrust;
  if ("after" in settings) fields["after"] = settings.after?.join("\n");
  if ("followUp" in settings) fields["follow_up"] = settings.followUp === true ? "yes" : undefined;
  return fields;
}

/** The request body, with only what differs from the defaults of the API. */
export function bodyOf(settings: Settings): Body {
  const body: Body = {
    query: settings.query,
    collection: settings.collection,
    max_tokens: settings.maxTokens,
    budget_query: settings.query,
  };
  if (settings.reservedTokens > 0) body.reserved_tokens = settings.reservedTokens;
  if (settings.system !== "") body.system = settings.system;
  if (settings.filter !== "") body.filter = JSON.parse(settings.filter) as Record<string, unknown>;
  if (settings.asOf !== "") body.as_of = new Date(settings.asOf).toISOString();
  if (settings.minSimilarity !== "") body.min_similarity = Number(settings.minSimilarity);
  if (settings.retrievers !== "both") body.retrievers = [settings.retrievers];
  if (!settings.rerank) body.rerank = false;
  if (settings.profile !== "default") body.query_context = { profile: settings.profile };
  if (settings.minTrust !== "any") body.min_trust = settings.minTrust;
  return body;
}

/** The filter is JSON that a person may be in the middle of writing. */
export function filterProblem(filter: string): string | undefined {
  if (filter === "") return undefined;
  try {
    const value: unknown = JSON.parse(filter);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : "A filter is an object.";
  } catch {
    return "This is not JSON yet.";
  }
}

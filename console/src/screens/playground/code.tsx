import { useState } from "preact/hooks";
import { CopyButton, Dialog, Segmented } from "../../ui/controls";
import { bodyOf, type Settings } from "./settings";

type Language = "python" | "curl" | "cli";

const LANGUAGES = [
  ["python", "Python"],
  ["curl", "curl"],
  ["cli", "CLI"],
] as const;

/** The question as code that gives the same window. */
export function CodeDialog({ settings, onClose }: { settings: Settings; onClose: () => void }) {
  const [language, choose] = useState<Language>("python");
  const code = { python, curl, cli }[language](settings);
  return (
    <Dialog title="The same window in code" onClose={onClose}>
      <div class="row code-tools">
        <Segmented label="Language" options={LANGUAGES} value={language} onChange={choose} />
        <CopyButton text={code} />
      </div>
      <pre tabIndex={0}>{code}</pre>
    </Dialog>
  );
}

/** A Python literal. JSON escapes in strings are Python's, too. */
function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value as object).map(([key, member]) => `${literal(key)}: ${literal(member)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

function python(settings: Settings): string {
  const { query, max_tokens, system, budget_query, reserved_tokens, filter, as_of, query_context, ...rest } = bodyOf(settings);
  const budget = { max_tokens, system, query: budget_query, reserved_tokens };
  const named = (values: object) =>
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${literal(value)}`)
      .join(", ");
  const lines = [
    "import conspectus",
    as_of === undefined || as_of === null ? "" : "from datetime import datetime",
    filter === undefined || filter === null ? "" : "from conspectus.model.filter_json import filter_from_json",
    "",
    `with conspectus.connect(${literal(location.origin)}, api_key="csp_...") as engine:`,
    "    window = engine.window(",
    `        ${literal(query)},`,
    `        conspectus.Budget(${named(budget)}),`,
    ...Object.entries(rest).map(([name, value]) => `        ${name}=${literal(value)},`),
    query_context ? `        query_context=conspectus.QueryContext(${named(query_context)}),` : "",
    filter === undefined || filter === null ? "" : `        filter=filter_from_json(${literal(filter)}),`,
    as_of === undefined || as_of === null ? "" : `        as_of=datetime.fromisoformat(${literal(as_of)}),`,
    "    )",
    "    print(window.text)",
  ];
  return lines.filter((line, at) => line !== "" || at === 3).join("\n");
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function curl(settings: Settings): string {
  return [
    `curl ${location.origin}/api/v1/context \\`,
    `  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\`,
    `  -d ${quoted(JSON.stringify(bodyOf(settings)))}`,
  ].join("\n");
}

function cli(settings: Settings): string {
  const options: (readonly [string, string])[] = [
    ["--url", location.origin],
    ["--collection", settings.collection],
    ["--max-tokens", String(settings.maxTokens)],
    ["--reserve-tokens", settings.reservedTokens > 0 ? String(settings.reservedTokens) : ""],
    ["--system", settings.system],
    ["--filter", settings.filter],
    ["--as-of", settings.asOf === "" ? "" : new Date(settings.asOf).toISOString()],
    ["--min-similarity", settings.minSimilarity],
    ["--min-trust", settings.minTrust === "any" ? "" : settings.minTrust],
    ["--retriever", settings.retrievers === "both" ? "" : settings.retrievers],
    ["--profile", settings.profile === "default" ? "" : settings.profile],
  ];
  const usedOptions = options.filter(([, value]) => value !== "").map(([name, value]) => `${name} ${shell(value)}`);
  usedOptions.push("--count-query");
  if (!settings.rerank) usedOptions.push("--no-rerank");
  return [`conspectus context ${quoted(settings.query)}`, ...usedOptions].join(" \\\n  ");
}

const shell = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : quoted(text));

import type { Schemas } from "../../api/client";

type Option = Schemas["ConnectorOption"];

/** What was typed for each option, by its name. */
export type Texts = Readonly<Record<string, string>>;

/** What a field shows while it is empty. */
export function exampleOf(option: Option): string {
  const { example } = option;
  if (example === null) return "";
  return Array.isArray(example) ? example.join(", ") : String(example);
}

/** The options of a connection. What was left empty is left out, and gets the connector's default. */
export function optionsOf(options: readonly Option[], texts: Texts): Record<string, unknown> {
  return Object.fromEntries(
    options
      .filter((option) => !option.secret)
      .map((option) => [option, (texts[option.name] ?? "").trim()] as const)
      .filter(([, text]) => text !== "")
      .map(([option, text]) => [option.name, valueOf(option, text)]),
  );
}

/** The credentials of a connection, as they were typed. */
export function credentialsOf(options: readonly Option[], texts: Texts): Record<string, string> {
  return Object.fromEntries(
    options
      .filter((option) => option.secret)
      .map((option) => [option.name, texts[option.name] ?? ""] as const)
      .filter(([, text]) => text !== ""),
  );
}

function valueOf({ type }: Option, text: string): unknown {
  const parts = text.split(",").map((part) => part.trim());
  switch (type) {
    case "boolean":
      return text === "true";
    case "integer":
    case "number":
      return numberOf(text);
    case "integers":
      return parts.map(numberOf);
    case "texts":
      return parts;
    default:
      return text;
  }
}

/** The number that a text says; another text is sent as it is, so that the server can say what is wrong. */
function numberOf(text: string): number | string {
  return Number.isNaN(Number(text)) ? text : Number(text);
}

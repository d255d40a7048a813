/** Writes from openapi.json: src/schema.ts, the types of the API, and src/routes.ts, a method for every operation. */
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const HEAD = "/* Generated from the OpenAPI document of the server. */\n";
const document = JSON.parse(readFileSync("openapi.json", "utf8"));

/** The operations as [path, method, operation], without their errors: each of these is a Problem. */
function* operations() {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      for (const status of Object.keys(operation.responses)) {
        if (!status.startsWith("2")) delete operation.responses[status];
      }
      yield [path, method.toUpperCase(), operation];
    }
  }
}

const camelCase = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

function propertiesOf(content) {
  const schema = content?.["application/json"]?.schema ?? content?.["multipart/form-data"]?.schema ?? {};
  const found = schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split("/").at(-1)];
  return Object.keys(found.properties ?? {});
}

/** `METHOD path?query,names`: all other arguments are the body. */
function routeOf(path, method, { parameters = [], requestBody, operationId }) {
  const query = parameters.filter((each) => each.in === "query").map((each) => each.name);
  const names = [...query, ...path.matchAll(/\{(\w+)\}/g).map((found) => found[1])];
  const twice = propertiesOf(requestBody?.content).filter((name) => names.includes(name));
  if (twice.length > 0) throw new Error(`${operationId}: ${twice} is in the body and elsewhere`);
  return `${method} ${path}${query.length > 0 ? `?${query}` : ""}`;
}

const methods = [];
const routes = [];
for (const [path, method, operation] of operations()) {
  const name = camelCase(operation.operationId);
  const text = (operation.description ?? operation.summary).replaceAll("*/", "* /").replaceAll("\n", "\n   * ");
  methods.push(`  /**\n   * ${text}\n   *\n   * \`${method} ${path}\`\n   */\n  ${name}: Call<"${operation.operationId}">;\n`);
  routes.push(`  ${name}: ${JSON.stringify(routeOf(path, method, operation))},\n`);
}
writeFileSync(
  "src/routes.ts",
  `${HEAD}import type { Call } from "./types.js";

/** A method for every operation of the API. */
export interface Operations {
${methods.join("")}}

export const ROUTES: Readonly<Record<keyof Operations, string>> = {
${routes.join("")}};
`,
);

const types = await openapiTS(document, {
  defaultNonNullable: false,
  transform: (schema) =>
    schema.contentMediaType === "application/octet-stream" ? ts.factory.createTypeReferenceNode("Blob") : undefined,
});
writeFileSync("src/schema.ts", `${HEAD}${astToString(types)}`);

/** What runs, what waits for a person, who may do what, and what models were asked. */
import type { ComponentType } from "preact";
import { useFields } from "../../ui/address";
import { Segmented } from "../../ui/controls";
import { Audit } from "./audit";
import { Overview } from "./overview";
import { People } from "./people";
import { Requests } from "./requests";
import "./operations.css";

type Part = "overview" | "people" | "requests" | "audit";

const NAMES = [
  ["overview", "Jobs and indexes"],
  ["people", "Users and keys"],
  ["requests", "Model requests"],
  ["audit", "Audit log"],
] as const;

const PARTS: Record<Part, ComponentType> = { overview: Overview, people: People, requests: Requests, audit: Audit };

export default function Operations() {
  const [fields, setFields] = useFields();
  const given = fields.get("part");
  const part = NAMES.find(([each]) => each === given)?.[0] ?? "overview";
  const Shown = PARTS[part];
  return (
    <>
      <Segmented label="Part" options={NAMES} value={part} onChange={(next) => setFields({ part: next })} />
      <div class="operations-part">
        <Shown />
      </div>
    </>
  );
}

/** What runs, what waits for a person, who may do what, and what models were asked. */
import type { ComponentType } from "preact";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { Segmented } from "../../ui/controls";
import { Missing } from "../../ui/load";
import { person } from "../../session";
import { Audit } from "./audit";
import { Feedback } from "./feedback";
import { Grants } from "./grants";
import { Identities } from "./identities";
import { Overview } from "./overview";
import { People } from "./people";
import { Quarantine } from "./quarantine";
import { Requests } from "./requests";
import "./operations.css";

type Part = "overview" | "quarantine" | "feedback" | "people" | "identities" | "grants" | "requests" | "audit";

const NAMES = [
  ["overview", "Jobs and indexes"],
  ["quarantine", "Quarantine"],
  ["feedback", "Feedback"],
  ["people", "Users and keys"],
  ["identities", "Identities"],
  ["grants", "Grants"],
  ["requests", "Model requests"],
  ["audit", "Audit log"],
] as const;

/** What only the owner account may see. */
const OWNERS: ReadonlySet<Part> = new Set(["identities", "requests", "audit"]);

const PARTS: Record<Part, ComponentType> = {
  overview: Overview,
  quarantine: Quarantine,
  feedback: Feedback,
  people: People,
  identities: Identities,
  grants: Grants,
  requests: Requests,
  audit: Audit,
};

const FIELDS = { part: textField("overview"), person: textField() };

export default function Operations() {
  const [fields, setFields] = useAddress(FIELDS);
  const names = NAMES.filter(([name]) => !OWNERS.has(name) || person.value?.owner === true);
  const part = names.find(([name]) => name === fields.part)?.[0];
  const PartScreen = part === undefined ? Missing : PARTS[part];
  return (
    <>
      <Segmented label="Part" options={names} value={part} onChange={(next) => setFields({ part: next, person: undefined })} />
      <div class="operations-part">
        <PartScreen />
      </div>
    </>
  );
}

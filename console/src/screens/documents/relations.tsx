import { Link } from "wouter-preact";
import type { Schemas } from "../../api/client";
import { pathOf } from "../../ui/location";

export type Relation = Schemas["DocumentRelation"];

const PASSIVE: Record<Relation["kind"], string> = {
  supersedes: "superseded by",
  amends: "amended by",
  duplicates: "duplicated by",
};

interface Related {
  id: string;
  name: string;
  /** How the document that is shown is related to this one. */
  words: string;
}

/** The other document of a relation, from the view of one of the two. */
function relatedTo(document: string, relation: Relation): Related {
  return relation.document === document
    ? { id: relation.other, name: relation.other_name, words: relation.kind }
    : { id: relation.document, name: relation.name, words: PASSIVE[relation.kind] };
}

/** That a document is out of date, with the one to read instead. */
export function SupersededLabel({ document, relations }: { document: string; relations: readonly Relation[] }) {
  const newer = relations.filter(
    (relation) => relation.kind === "supersedes" && relation.other === document && relation.reason === "",
  );
  if (newer.length === 0) return null;
  return (
    <p class="small">
      <span class="tag bad">superseded by</span>{" "}
      {newer.map((relation, at) => (
        <span key={relation.document}>
          {at > 0 && ", "}
          <Link class="link" href={pathOf({ document: relation.document })}>
            {relation.name}
          </Link>
        </span>
      ))}
    </p>
  );
}

/** How a document is related to others: what it supersedes, amends or duplicates, and claims without effect. */
export function Relations({ document, relations }: { document: string; relations: readonly Relation[] }) {
  if (relations.length === 0) return null;
  return (
    <section class="panel" aria-label="Relations">
      <h2>Relations</h2>
      <ul class="list after">
        {relations.map((relation) => {
          const { id, name, words } = relatedTo(document, relation);
          return (
            <li key={`${words} ${id}`}>
              <span class={relation.reason === "" ? "tag" : "tag bad"}>
                {relation.reason === "" ? words : `claim: ${words}`}
              </span>{" "}
              <Link class="link" href={pathOf({ document: id })}>
                {name}
              </Link>
              {relation.reason !== "" && <span class="small dim block-line">without effect: {relation.reason}</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

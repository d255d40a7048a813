/** Who can see a document, and by which grants. */
import type { Schemas } from "../api/client";

/** Where a role comes from, if it is not the user's own grant. */
export function because(origins: readonly Schemas["RoleOrigin"][]): string {
  const groups = origins.filter((each) => each.kind === "group").map((each) => `by the group ${each.group}`);
  return groups.length === 0 ? "" : `, ${groups.join(", ")}`;
}

export function ReaderList({ readers }: { readers: readonly Schemas["DocumentReader"][] }) {
  return (
    <ul class="list after" aria-label="Readers">
      {readers.map((each) => (
        <li key={each.user} class="row">
          <b>{each.name}</b>
          <span class="small dim">
            {each.role}
            {because(each.origins)}
          </span>
        </li>
      ))}
    </ul>
  );
}

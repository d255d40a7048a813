/** Who can see a document, and by which grants. */
import type { Schemas } from "../api/client";

/** Where a role comes from, if it is not the user's own grant. */
export function reasonOf(origins: readonly Schemas["RoleOrigin"][]): string {
  const groups = origins.filter((origin) => origin.kind === "group").map((origin) => `by the group ${origin.group}`);
  return groups.length === 0 ? "" : `, ${groups.join(", ")}`;
}

export function ReaderList({ readers }: { readers: readonly Schemas["DocumentReader"][] }) {
  return (
    <ul class="list after" aria-label="Readers">
      {readers.map((reader) => (
        <li key={reader.user} class="row">
          <b>{reader.name}</b>
          <span class="small dim">
            {reader.role}
            {reasonOf(reader.origins)}
          </span>
        </li>
      ))}
    </ul>
  );
}

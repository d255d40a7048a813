import { api, type Schemas } from "../../api/client";
import { ifAllowed, readCollections } from "../../api/lists";
import { counted, instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";

const NEWEST = 100;

const REVIEWS = new Map([
  ["release", "released from quarantine"],
  ["delete_quarantined", "deleted from quarantine"],
]);

/** What an entry says that is neither a question as another user nor a review. */
function Change({ of, users }: { of: Schemas["AuditEntry"]; users: ReadonlyMap<string, string> }) {
  return (
    <>
      {of.action.replaceAll("_", " ")} <b>{of.subject_name || (users.get(of.subject) ?? of.subject)}</b>
    </>
  );
}

/** Changes of accounts and settings, questions that were asked as another user, and reviews of documents. */
export function Audit() {
  const loaded = useLoad(async (signal) => {
    const { entries } = await api.listAudit({ limit: NEWEST }, { signal });
    const users = await ifAllowed(api.listUsers({}, { signal }));
    const collections = await readCollections();
    return {
      entries,
      users: new Map(users.map((user) => [user.id, user.name])),
      collections: new Map(collections.map((collection) => [collection.id, collection.name])),
    };
  }, []);
  return (
    <Show of={loaded} what="the audit log">
      {({ entries, users, collections }) => (
        <>
          <h1>{entries.length === 0 ? "The audit log is empty" : counted(entries.length, "entry", "entries")}</h1>
          <ul class="list after">
            {entries.map((entry) => (
              <li key={entry.id} class="audit-row">
                <span>
                  <b>{entry.actor_name || (users.get(entry.actor) ?? entry.actor)}</b>{" "}
                  {entry.subject !== "" ? (
                    <Change of={entry} users={users} />
                  ) : (
                    REVIEWS.get(entry.action) ?? (
                      <>
                        as <b>{users.get(entry.viewed_as) ?? entry.viewed_as}</b>
                      </>
                    )
                  )}
                  {entry.collection !== null && <> in {collections.get(entry.collection) ?? entry.collection}</>}
                  <span class="text small dim block-line">{entry.detail || entry.query}</span>
                </span>
                <span class="small dim">{instant(entry.created)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Show>
  );
}

import { api, type Schemas } from "../../api/client";
import { ifAllowed } from "../../api/lists";
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
    const collections = await api.listCollections({}, { signal });
    return {
      entries,
      users: new Map(users.map((each) => [each.id, each.name])),
      collections: new Map(collections.map((each) => [each.id, each.name])),
    };
  }, []);
  return (
    <Show of={loaded} what="the audit log">
      {({ entries, users, collections }) => (
        <>
          <h1>{entries.length === 0 ? "The audit log is empty" : counted(entries.length, "entry", "entries")}</h1>
          <ul class="list after">
            {entries.map((each) => (
              <li key={each.id} class="audit-row">
                <span>
                  <b>{each.actor_name || (users.get(each.actor) ?? each.actor)}</b>{" "}
                  {each.subject !== "" ? (
                    <Change of={each} users={users} />
                  ) : (
                    REVIEWS.get(each.action) ?? (
                      <>
                        as <b>{users.get(each.viewed_as) ?? each.viewed_as}</b>
                      </>
                    )
                  )}
                  {each.collection !== null && <> in {collections.get(each.collection) ?? each.collection}</>}
                  <span class="text small dim block-line">{each.detail || each.query}</span>
                </span>
                <span class="small dim">{instant(each.created)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Show>
  );
}

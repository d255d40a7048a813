import { api } from "../../api/client";
import { ifAllowed } from "../../api/lists";
import { counted, instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";

const NEWEST = 100;

const REVIEWS = new Map([
  ["release", "released from quarantine"],
  ["delete_quarantined", "deleted from quarantine"],
]);

/** The questions that were asked as another user, and reviews of quarantined documents. */
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
                  <b>{users.get(each.actor) ?? each.actor}</b>{" "}
                  {REVIEWS.get(each.action) ?? (
                    <>
                      as <b>{users.get(each.viewed_as) ?? each.viewed_as}</b>
                    </>
                  )}{" "}
                  in {collections.get(each.collection) ?? each.collection}
                  <span class="text small dim block-line">{each.query}</span>
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

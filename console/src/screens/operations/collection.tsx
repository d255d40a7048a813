import type { ComponentChildren } from "preact";
import { api } from "../../api/client";
import { readCollections, usualOf } from "../../api/lists";
import { person } from "../../session";
import { useAddress } from "../../ui/address";
import { textField } from "../../ui/address-fields";
import { Show, State, useLoad } from "../../ui/load";

const FIELDS = { collection: textField() };

/** What belongs to one collection, which is chosen above it and stands in the address. */
export function OfCollection({ children }: { children: (collection: string) => ComponentChildren }) {
  const [fields, setFields] = useAddress(FIELDS);
  const collections = useLoad(readCollections, []);
  return (
    <Show of={collections} what="the collections">
      {(collections) => {
        const selected = fields.collection || usualOf(collections.map((collection) => collection.name));
        if (selected === undefined) return <State title="There is no collection that you may see" />;
        return (
          <>
            <label class="small dim">
              Collection{" "}
              <select
                class="pick operations-name"
                value={selected}
                onChange={(event) => setFields({ collection: event.currentTarget.value })}
              >
                {collections.map((collection) => (
                  <option key={collection.id}>{collection.name}</option>
                ))}
              </select>
            </label>
            {children(selected)}
          </>
        );
      }}
    </Show>
  );
}

/** Names of users and groups by id, which only the owner account may list. */
export async function principals(signal: AbortSignal): Promise<Map<string, string>> {
  if (person.value?.owner !== true) return new Map();
  const [users, groups] = await Promise.all([api.listUsers({}, { signal }), api.listGroups({}, { signal })]);
  return new Map([...users, ...groups].map((principal) => [principal.id, principal.name]));
}

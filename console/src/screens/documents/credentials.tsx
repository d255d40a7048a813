import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { useLoad } from "../../ui/load";
import { OptionField } from "./connect";
import { credentialsOf, type Texts } from "./connector-options";

/** Replaces the credentials of a connection, which nobody sees again. */
export function Credentials({
  connection,
  collection,
  onStored,
}: {
  connection: Schemas["Connection"];
  collection: string;
  onStored: () => void;
}) {
  const kinds = useLoad((signal) => api.listConnectors({ signal }), []);
  const [texts, setTexts] = useState<Texts>({});
  const { act, busy, failure } = useAction();
  const kind = (kinds.data ?? []).find((candidate) => candidate.name === connection.connector);
  const secrets = (kind?.options ?? []).filter((option) => option.secret);
  if (secrets.length === 0) return null;
  const store = () =>
    act(
      () =>
        api.setCredentials({ collection, name: connection.name, credentials: credentialsOf(secrets, texts) }),
      () => {
        setTexts({});
        onStored();
      },
    );
  return (
    <details>
      <summary class="link small">Replace credentials</summary>
      <form
        class="cluster after"
        onSubmit={(event) => {
          event.preventDefault();
          store();
        }}
      >
        {secrets.map((option) => (
          <OptionField
            key={option.name}
            option={option}
            text={texts[option.name] ?? ""}
            onInput={(text) => setTexts((before) => ({ ...before, [option.name]: text }))}
          />
        ))}
        <button class="btn" type="submit" disabled={busy}>
          Store credentials
        </button>
      </form>
      <Failure text={failure} />
    </details>
  );
}

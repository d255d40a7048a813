import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { useLoad } from "../../ui/load";
import { credentialsOf, exampleOf, optionsOf, type Texts } from "./connector-options";

type Option = Schemas["ConnectorOption"];

/** Asks for one option, as its connector declares it. */
export function OptionField({ option, text, onInput }: { option: Option; text: string; onInput: (text: string) => void }) {
  if (option.type === "boolean") {
    return (
      <label class="cluster small connect-option">
        <input
          type="checkbox"
          checked={text === "true"}
          onChange={(event) => onInput(String(event.currentTarget.checked))}
        />
        {option.help}
      </label>
    );
  }
  return (
    <label class="small connect-option">
      {option.help}
      <input
        class="field"
        name={option.name}
        type={option.secret ? "password" : "text"}
        autocomplete="off"
        required={option.required}
        placeholder={exampleOf(option)}
        value={text}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

/** Connects a collection by one of the installed connectors. */
export function Connect({ collection, onConnected }: { collection: string; onConnected: (name: string) => void }) {
  const kinds = useLoad((signal) => api.listConnectors({ signal }), []);
  const [connectorName, choose] = useState("git");
  const [name, setName] = useState("");
  const [texts, setTexts] = useState<Texts>({});
  const { act, busy, failure } = useAction();
  const usable = (kinds.data ?? []).filter((kind) => kind.failure === null);
  const kind = usable.find((one) => one.name === connectorName) ?? usable[0];
  if (kind === undefined) return null;
  const connect = () =>
    act(
      () =>
        api.createConnection({
          collection,
          name: name.trim(),
          connector: kind.name,
          options: optionsOf(kind.options, texts),
          credentials: credentialsOf(kind.options, texts),
        }),
      () => {
        onConnected(name.trim());
        setName("");
        setTexts({});
      },
    );
  return (
    <details class="connect">
      <summary class="link small">Connect a repository, a wiki or a folder</summary>
      <form
        class="cluster after"
        onSubmit={(event) => {
          event.preventDefault();
          connect();
        }}
      >
        <select
          class="pick"
          aria-label="Kind of connection"
          value={kind.name}
          onChange={(event) => {
            choose(event.currentTarget.value);
            setTexts({});
          }}
        >
          {usable.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
        <input
          class="field connect-name"
          required
          aria-label="Name of the connection"
          placeholder="Name"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        {kind.options.map((option) => (
          <OptionField
            key={`${kind.name} ${option.name}`}
            option={option}
            text={texts[option.name] ?? ""}
            onInput={(text) => setTexts((before) => ({ ...before, [option.name]: text }))}
          />
        ))}
        <button class="btn" type="submit" disabled={busy}>
          Connect and sync
        </button>
      </form>
      <Failure text={failure} />
    </details>
  );
}

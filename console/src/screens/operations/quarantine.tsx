import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { readPages } from "../../api/lists";
import { ConfirmButton } from "../../ui/action";
import { counted, instant, wholeNumber } from "../../ui/format";
import { Show, State, useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import { TrustLabel } from "../../window/trust";
import { OfCollection } from "./collection";

type Quarantined = Schemas["Quarantined"];

const PAGE = 50;

/** What each attack pattern looks for. */
const PATTERNS = new Map([
  ["override", "It tells a model to ignore its instructions."],
  ["role_marker", "It contains marks of a chat, as if a system or a user spoke."],
  ["persona", "It gives a model another role."],
  ["reveal_prompt", "It asks a model for its prompt."],
  ["exfiltrate", "It asks a model to send data to an address."],
  ["hide_from_user", "It asks a model to hide something from the user."],
  ["address_model", "It speaks to a model, not to a reader."],
  ["hidden_text", "It contains letters that nobody sees."],
  ["by_writer", "Its writer asked for a review."],
]);

/** Texts that no search and no window has until a manager has read them. */
export function Quarantine() {
  return <OfCollection>{(collection) => <Review key={collection} collection={collection} />}</OfCollection>;
}

function Review({ collection }: { collection: string }) {
  const [count, setCount] = useState(PAGE);
  const loaded = useLoad(
    async (signal) => {
      const pages = await readPages(count, PAGE, async (limit, after) => {
        const page = await api.listQuarantined({ collection, limit, after }, { signal });
        return { rows: page.documents, next: page.next };
      });
      const sources = await api.listSources({ collection }, { signal });
      return { ...pages, sources: new Map(sources.map((source) => [source.id, source.name])) };
    },
    [count],
  );
  if (loaded.error?.status === 403) {
    return (
      <State title="Only managers review quarantined texts">
        <p class="sub">{loaded.error.message}</p>
      </State>
    );
  }
  return (
    <Show of={loaded} what="the quarantined texts">
      {({ rows, next, sources }) => (
        <>
          <h1 class="after">
            {rows.length === 0
              ? `Nothing of ${collection} waits for a review`
              : `${next === null ? "" : "At least "}${counted(rows.length, "text")} of ${collection} ${rows.length === 1 ? "waits" : "wait"} for your review`}
          </h1>
          <p class="sub">
            A text below the level “trusted” that looks like an attack on a model is in no search, window or list until a
            manager releases it. A released text keeps its level.
          </p>
          <ol class="held-list after" aria-label="Quarantined texts">
            {rows.map((row) => (
              <li key={row.id}>
                <QuarantinedText document={row} source={sources.get(row.source) ?? ""} onDone={loaded.reload} />
              </li>
            ))}
          </ol>
          {next !== null && (
            <p class="cluster after">
              <button class="btn" type="button" onClick={() => setCount(count + PAGE)}>
                Load more
              </button>
            </p>
          )}
        </>
      )}
    </Show>
  );
}

function QuarantinedText({ document, source, onDone }: { document: Quarantined; source: string; onDone: () => void }) {
  const [deleting, remove] = useState(false);
  const name = document.title || document.key;
  return (
    <article class="panel held" aria-label={name}>
      <div class="held-why">
        <span class="tag">{document.pattern.replaceAll("_", " ")}</span>
        <span>{PATTERNS.get(document.pattern) ?? "It matches this attack pattern."}</span>
      </div>
      <div class="held-head">
        <div>
          <h2>{name}</h2>
          <p class="small dim">
            {source === "" ? document.key : `${source} / ${document.key}`}
            {document.author !== null && ` · ${document.author}`} · {instant(document.recorded)}
          </p>
        </div>
        <TrustLabel origin={document.origin} trust={document.trust} />
      </div>
      <p class="text held-text" tabIndex={0} role="region" aria-label={`Text of ${name}`}>
        {document.text}
      </p>
      {Object.keys(document.metadata).length > 0 && (
        <dl class="receipt" aria-label={`Metadata of ${name}`}>
          {Object.entries(document.metadata).map(([field, value]) => (
            <div key={field}>
              <dt class="dim">{field}</dt>
              <dd>{JSON.stringify(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <p class="cluster">
        <ConfirmButton
          label="Release"
          name={`Release ${name}`}
          title={`Release ${name}?`}
          danger={false}
          run={() => api.releaseQuarantined({ document: document.id })}
          onDone={onDone}
        >
          <p>
            From now on, searches and windows have it, at the level “{document.trust}”. The release is noted in the audit log.
          </p>
        </ConfirmButton>
        <button class="btn compact danger" type="button" aria-label={`Delete ${name}`} onClick={() => remove(true)}>
          Delete …
        </button>
      </p>
      {deleting && (
        <DeleteDialog
          title={`Delete ${name}?`}
          preview={{ document: document.key, pattern: document.pattern, characters: wholeNumber(Array.from(document.text).length) }}
          remove={async (purge) => {
            const receipt = await api.deleteDocument({ document: document.id, purge });
            return { document: document.key, id: document.id, ...receipt };
          }}
          onClose={(deleted) => {
            remove(false);
            if (deleted) onDone();
          }}
        />
      )}
    </article>
  );
}

/** A question as another user: what that person's window lacks, and which grant would give it. */
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ifAllowed, readCollections, usualOf } from "../../api/lists";
import { person } from "../../session";
import { useFields, type Fields } from "../../ui/address";
import { counted, wholeNumber } from "../../ui/format";
import { Failed, Show, State, useLoad } from "../../ui/load";
import { passagesOf } from "../../window/anatomy";
import { Side } from "../../window/side";
import { bodyOf, settingsOf, type Settings } from "../playground/settings";
import { MissingGrants, Readers, Roles } from "./access";
import { Slope } from "./slope";
import "./see-as.css";

type Explained = Schemas["ExplanationAs"];

export default function SeeAs() {
  const [fields, setFields] = useFields();
  const options = useLoad(async (signal) => {
    const collections = await readCollections();
    return { collections: collections.map((collection) => collection.name), users: await userNames(signal) };
  }, []);
  const [query, user] = [fields.get("query") ?? "", fields.get("user") ?? ""];
  return (
    <Show of={options} what="the collections">
      {({ collections, users }) => {
        const collection = fields.get("collection") ?? usualOf(collections);
        if (collection === undefined) {
          return (
            <State title="Nothing is stored yet">
              <p class="sub">Add documents and users first; then this shows what each of them sees.</p>
            </State>
          );
        }
        return (
          <>
            <Form
              key={`${query}/${user}/${collection}`}
              query={query}
              user={user}
              collection={collection}
              collections={collections}
              users={users}
              onAsk={setFields}
            />
            {query === "" || user === "" ? (
              <State title="See a question as another user">
                <p class="sub">
                  For the owner, and for managers of the collection. Each question that is asked this way is noted in
                  the audit log.
                </p>
              </State>
            ) : (
              <Answer
                settings={{ ...settingsOf(fields), collection }}
                user={user}
                playground={`/playground?${withoutUser(fields)}`}
                onBack={() => setFields({ user: undefined })}
              />
            )}
          </>
        );
      }}
    </Show>
  );
}

/** The names of all users, for those who may list them. */
async function userNames(signal: AbortSignal): Promise<string[]> {
  return (await ifAllowed(api.listUsers({}, { signal }))).map((user) => user.name);
}

function Form({
  query,
  user,
  collection,
  collections,
  users,
  onAsk,
}: {
  query: string;
  user: string;
  collection: string;
  collections: readonly string[];
  users: readonly string[];
  onAsk: (fields: Fields) => void;
}) {
  const [typed, type] = useState({ query, user, collection });
  return (
    <form
      class="panel see-form"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk({ ...typed });
      }}
    >
      <label>
        <span class="label">Question</span>
        <input
          class="field"
          required
          value={typed.query}
          onInput={(event) => type({ ...typed, query: event.currentTarget.value })}
        />
      </label>
      <label>
        <span class="label">In</span>
        <select
          class="field"
          value={typed.collection}
          onChange={(event) => type({ ...typed, collection: event.currentTarget.value })}
        >
          {collections.map((collection) => (
            <option key={collection}>{collection}</option>
          ))}
        </select>
      </label>
      <label>
        <span class="label">As the user (name or id)</span>
        <input
          class="field"
          required
          list="users"
          value={typed.user}
          onInput={(event) => type({ ...typed, user: event.currentTarget.value })}
        />
      </label>
      <datalist id="users">
        {users.map((user) => (
          <option key={user} value={user} />
        ))}
      </datalist>
      <button class="btn primary" type="submit">
        See as
      </button>
    </form>
  );
}

function withoutUser(fields: URLSearchParams): string {
  const rest = new URLSearchParams(fields);
  rest.delete("user");
  return rest.toString();
}

function Answer({
  settings,
  user,
  playground,
  onBack,
}: {
  settings: Settings;
  user: string;
  /** The address of the same question in the playground. */
  playground: string;
  onBack: () => void;
}) {
  const { collection } = settings;
  const explained = useLoad(
    (signal) => api.explainAs({ user, ...bodyOf(settings) }, { signal }),
    [JSON.stringify(settings), user],
  );
  const sources = useLoad((signal) => api.listSources({ collection }, { signal }), [collection]);
  if (explained.error?.status === 404) {
    return (
      <State title="Nothing here that you may see">
        <p class="sub">{explained.error.message}</p>
      </State>
    );
  }
  if (explained.error !== undefined) {
    return <Failed problem={explained.error} what={`the window of ${user}`} retry={explained.reload} />;
  }
  return (
    <Show of={explained} what="the window">
      {(explanation) => (
        <>
          <div class="note-bar" role="status">
            <span>
              You are seeing as <b>{user}</b>. This question is in the audit log.
            </span>
            <button class="btn" type="button" onClick={onBack}>
              Back to {person.value?.name}
            </button>
          </div>
          <Compared explained={explanation} user={user} playground={playground} />
          <Slope
            ownEntries={explanation.own.trace}
            other={explanation.window.trace}
            hidden={hiddenSources(explanation)}
            sources={new Map(sources.data?.map((source) => [source.id, source.name]))}
          />
          <div class="columns see-access">
            <MissingGrants grants={explanation.missing_grants} user={user} collection={collection} onGranted={explained.reload} />
            <Roles user={user} collection={collection} />
          </div>
          <Readers trace={explanation.own.trace} />
        </>
      )}
    </Show>
  );
}

const hiddenSources = (explained: Explained): ReadonlySet<string> =>
  new Set(explained.missing_grants.map((grant) => grant.source));

function Compared({ explained, user, playground }: { explained: Explained; user: string; playground: string }) {
  const hidden = hiddenSources(explained);
  const ownPassages = passagesOf(explained.own);
  const lost = new Set(ownPassages.filter((passage) => hidden.has(passage.citation.source)).map((passage) => passage.number));
  return (
    <>
      <h1>
        {lost.size === 0
          ? `${user} sees all that is in your window.`
          : `${wholeNumber(lost.size)} of your ${counted(ownPassages.length, "passage")} ${lost.size === 1 ? "does" : "do"} not exist for ${user}.`}
      </h1>
      <p class="sub">Outlined in red: {user} has no role on it. Other passages that {user} may see take its place.{" "}
        <Link class="link" href={playground}>
          Change the settings in the Playground
        </Link>{" "}
        <Link class="link" href={`/answers?user=${encodeURIComponent(user)}`}>
          See what {user} was given
        </Link>
      </p>
      <div class="duo">
        <Side name={`${person.value?.name ?? "You"}`} window={explained.own} lost={lost} />
        <Side name={user} window={explained.window} />
      </div>
    </>
  );
}

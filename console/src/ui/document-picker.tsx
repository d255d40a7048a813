/** Finds a document by a part of its title, key or file name, or by its id. It searches on the server. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { useAction } from "./action";
import { useKeys } from "./keys";
import { useLoad } from "./load";
import { Name } from "./name";
import { isId, labelsOf, nameOf, type NamedDocument } from "./naming";

const MS_OF_PAUSE = 250;
const MAX_CHOICES = 20;

interface Props {
  /** The id of the field, for its label. */
  id: string;
  collection: string;
  /** The id of the chosen document, or nothing. */
  document: string;
  /** Documents that are offered before anything is written. */
  nearest: readonly NamedDocument[];
  /** The key of the keyboard that goes to the field. */
  shortcut: string;
  /** A text that names no document is given as it is. */
  onDocument: (id: string) => void;
}

export function DocumentPicker({ id, collection, document, nearest, shortcut, onDocument }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [typed, type] = useState("");
  const [words, search] = useState("");
  const [equals, setEquals] = useState<readonly NamedDocument[]>([]);
  const { act, failure } = useAction();
  useKeys({ [shortcut]: () => input.current?.focus() });
  const matches = useLoad((signal) => (words === "" ? undefined : findByPart(collection, words, signal)), [collection, words]);
  const named = useLoad((signal) => (document === "" ? undefined : findByName(collection, document, signal)), [collection, document]);
  const name = nameById(document, [...nearest, ...(named.data ?? [])]);
  useEffect(() => {
    // Names arrive while a person writes: what is written stays.
    if (globalThis.document.activeElement !== input.current) type(name);
  }, [name]);
  useEffect(() => {
    const timer = setTimeout(() => search(typed === name ? "" : typed.trim()), MS_OF_PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  const choices = words === "" ? nearest : (matches.data ?? []);
  const labels = labelsOf(choices);
  const choose = (chosenId: string) => {
    setEquals([]);
    onDocument(chosenId);
  };
  const chooseByText = (text: string) => {
    const choice = choices.find(({ id }) => labels.get(id) === text);
    if (choice !== undefined) return choose(choice.id);
    act(
      async () => {
        const exact = await findByName(collection, text.trim());
        return exact.length > 0 ? exact : findByPart(collection, text.trim());
      },
      (documents) => {
        if (documents.length > 1) setEquals(documents);
        else choose(documents[0]?.id ?? text.trim());
      },
    );
  };
  return (
    <>
      <input
        ref={input}
        id={id}
        class="field"
        list={`${id}-choices`}
        placeholder="Title, key or id of a document"
        maxLength={500}
        value={typed}
        onInput={(event) => type(event.currentTarget.value)}
        onChange={(event) => event.currentTarget.value.trim() !== "" && chooseByText(event.currentTarget.value)}
      />
      <datalist id={`${id}-choices`}>
        {choices.map((choice) => (
          <option key={choice.id} value={labels.get(choice.id)} />
        ))}
      </datalist>
      {failure !== "" && <p class="small">{failure}</p>}
      {equals.length > 0 && (
        <ul class="list" aria-label="Which document?">
          {equals.map((choice) => (
            <li key={choice.id}>
              <button class="chip" type="button" onClick={() => choose(choice.id)}>
                <Name document={choice} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const nameById = (id: string, documents: readonly NamedDocument[]): string => {
  const document = documents.find((candidate) => candidate.id === id);
  return document === undefined ? id : nameOf(document);
};

/** The documents of which a title or key has these words. */
async function findByPart(collection: string, words: string, signal?: AbortSignal): Promise<NamedDocument[]> {
  const parts = ["title", "key"].map((field) => ({ field, contains: words }));
  return find(collection, { or: parts }, signal);
}

/** The documents with exactly this id, title, key or file name. */
async function findByName(collection: string, name: string, signal?: AbortSignal): Promise<NamedDocument[]> {
  const fields = isId(name) ? ["document"] : ["title", "key", "file"];
  return find(collection, { or: fields.map((field) => ({ field, eq: name })) }, signal);
}

async function find(collection: string, filter: object, signal?: AbortSignal): Promise<NamedDocument[]> {
  const query = { collection, filter: [JSON.stringify(filter)], limit: MAX_CHOICES, sort: "title" as const };
  const { documents } = await api.listDocuments(query, { signal });
  return documents.map(({ id, title, key, author }) => ({ id, title, key, author }));
}

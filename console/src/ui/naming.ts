/** What a document is called. */

const MAX_WORDS = 12;

export interface Named {
  title: string;
  key: string;
  /** The text, or its beginning: its first words stand for a title that is missing. */
  text?: string | undefined;
  author?: string | null | undefined;
  /** The name of the source. */
  source?: string | undefined;
}

/** The title, or else the first words of the text, or else the key. */
export function nameOf({ title, text = "", key }: Pick<Named, "title" | "key" | "text">): string {
  if (title.trim() !== "") return title;
  const words = text.trim().split(/\s+/, MAX_WORDS + 1).filter((word) => word !== "");
  if (words.length === 0) return key || "Without a title";
  return words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS).join(" ")} …` : words.join(" ");
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text can be the id of a document; a filter refuses other texts as ids. */
export const isId = (text: string): boolean => ID.test(text);

export interface NamedDocument extends Named {
  id: string;
}

/** A label for each document, by id: its name, and where two are called the same, also the key, and then the id. */
export function labelsOf(documents: readonly NamedDocument[]): Map<string, string> {
  const labels = new Map(documents.map((document) => [document.id, nameOf(document)]));
  for (const addition of ["key", "id"] as const) {
    const counts = new Map<string, number>();
    for (const label of labels.values()) counts.set(label, (counts.get(label) ?? 0) + 1);
    for (const document of documents) {
      const label = labels.get(document.id) ?? "";
      if ((counts.get(label) ?? 0) > 1) labels.set(document.id, `${label} (${document[addition]})`);
    }
  }
  return labels;
}

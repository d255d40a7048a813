/** The fields of addresses: what each holds, how it is read and how it is written. Pure, so that it is tested alone. */

export interface Field<T> {
  /** The value of a text of the address; that of a missing or wrong one is the default. */
  read: (text: string | null) => T;
  /** The text of a value; the default is written as nothing. */
  write: (value: T) => string;
}

export const textField = (fallback = ""): Field<string> => ({
  read: (text) => text ?? fallback,
  write: (value) => (value === fallback ? "" : value),
});

/** One of a few words; the first is the default. */
export const choiceField = <T extends string>(options: readonly [T, ...T[]]): Field<T> => ({
  read: (text) => options.find((option) => option === text) ?? options[0],
  write: (value) => (value === options[0] ? "" : value),
});

/** One of the choices of a control with their labels; the first is the default. */
export const labelledField = <T extends string>(
  choices: readonly [readonly [T, string], ...(readonly [T, string])[]],
): Field<T> => choiceField(choices.map(([name]) => name) as [T, ...T[]]);

export const flagField = (): Field<boolean> => ({
  read: (text) => text === "yes",
  write: (value) => (value ? "yes" : ""),
});

/** A whole number from 1 to `most`; 0 where there is none. */
export const countField = (most: number): Field<number> => ({
  read: (text) => (text !== null && /^\d{1,15}$/.test(text) && Number(text) <= most ? Number(text) : 0),
  write: (value) => (value === 0 ? "" : String(value)),
});

/** A number from 0 to 1; 0 where there is none. */
export const shareField = (): Field<number> => ({
  read: (text) => (text !== null && Number(text) > 0 && Number(text) <= 1 ? Number(text) : 0),
  write: (value) => (value === 0 ? "" : String(value)),
});

const BETWEEN = "\n";

/** Texts without line breaks, such as names. */
export const listField = (): Field<readonly string[]> => ({
  read: (text) => (text === null || text === "" ? [] : text.split(BETWEEN)),
  write: (value) => value.join(BETWEEN),
});

// oxlint-disable-next-line typescript/no-explicit-any
export type FieldSet = Record<string, Field<any>>;
export type Values<S extends FieldSet> = { [K in keyof S]: S[K] extends Field<infer T> ? T : never };

/** The values of all fields. */
export function readFields<S extends FieldSet>(fields: S, search: URLSearchParams): Values<S> {
  const entries = Object.entries(fields).map(([name, field]) => [name, field.read(search.get(name))]);
  return Object.fromEntries(entries) as Values<S>;
}

/** The texts of the changed fields; an empty one leaves the address. */
export function writeFields<S extends FieldSet>(fields: S, changes: Partial<Values<S>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(changes).map(([name, value]) => [name, value === undefined ? "" : (fields[name]?.write(value) ?? "")]),
  );
}

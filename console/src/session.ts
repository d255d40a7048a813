/** Who uses the console. A cookie that scripts cannot read has the token of a session. */
import { signal } from "@preact/signals";
import { api, Problem, type Schemas } from "./api/client";

export type Person = Schemas["Person"];

/** Whether this browser logged in; without accounts nobody needs to. */
const LOGGED_IN = "conspectus-logged-in";
export const loggedIn = (): boolean => localStorage.getItem(LOGGED_IN) !== null;

/** undefined: not known yet; null: a key is needed. */
export const person = signal<Person | null | undefined>(undefined);

/** Asks the server who the session belongs to. Throws Problem if it does not answer. */
export async function resume(): Promise<void> {
  try {
    person.value = await api.whoami();
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    person.value = null;
  }
}

export async function login(credential: { key: string } | { invitation: string }): Promise<void> {
  person.value = await api.createSession(credential);
  localStorage.setItem(LOGGED_IN, "yes");
}

const INVITATION = "#invitation=";

/** The token of the invitation whose link was opened. */
export const invitation = signal<string | null>(
  location.hash.startsWith(INVITATION) ? location.hash.slice(INVITATION.length) : null,
);

/** Takes the invitation out of the address, so that neither the history nor a bookmark has it. */
export function forgetInvitation(): void {
  history.replaceState(null, "", location.pathname + location.search);
  invitation.value = null;
}

export async function logout(): Promise<void> {
  await api.deleteSession();
  localStorage.removeItem(LOGGED_IN);
  person.value = null;
}

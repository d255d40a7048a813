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
    const user = await api.whoami();
    returnAfterSignIn();
    person.value = user;
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    person.value = null;
  }
}

export async function login(credential: { key: string } | { invitation: string }): Promise<void> {
  person.value = await api.createSession(credential);
  localStorage.setItem(LOGGED_IN, "yes");
  sessionStorage.removeItem(RETURN_PATH);
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

const SIGN_IN = "/sign-in";
const BY_PROVIDER = "provider";
const SIGN_IN_FAILED = "#sign-in=failed";
/** Where the browser goes on after a sign-in; the server itself sends it nowhere but to the console. */
const RETURN_PATH = "conspectus-return-path";

export interface Provider {
  /** null: nobody signs in with a provider here. */
  name: string | null;
  /** Address of the server at which people sign in. */
  address: string;
}

/** Whether the last sign-in with the provider failed. */
export const signInFailed = location.hash === SIGN_IN_FAILED;
if (signInFailed) history.replaceState(null, "", location.pathname + location.search);

export async function readProvider(): Promise<Provider | null> {
  const response = await fetch(`${SIGN_IN}/provider`);
  if (!response.ok) return null;
  const provider = (await response.json()) as Provider;
  return provider.name === null ? null : provider;
}

/** Leaves for the provider. At another address of the server, people first go to the one that it knows. */
export function signIn(provider: Provider): void {
  if (new URL(provider.address).origin !== location.origin) {
    location.assign(`${provider.address}/console/`);
    return;
  }
  sessionStorage.setItem(RETURN_PATH, location.pathname + location.search);
  location.assign(SIGN_IN);
}

/** Goes back to the page on which a sign-in began, if this browser comes from one. */
function returnAfterSignIn(): void {
  const path = sessionStorage.getItem(RETURN_PATH);
  if (path === null) return;
  sessionStorage.removeItem(RETURN_PATH);
  localStorage.setItem(LOGGED_IN, BY_PROVIDER);
  if (path.startsWith("/console/")) history.replaceState(null, "", path);
}

/** Logs out here, and then at the provider, if the login was one there. */
export async function logout(): Promise<void> {
  const signedInAtProvider = localStorage.getItem(LOGGED_IN) === BY_PROVIDER;
  await api.deleteSession();
  localStorage.removeItem(LOGGED_IN);
  person.value = null;
  if (signedInAtProvider) location.assign(`${SIGN_IN}/end`);
}

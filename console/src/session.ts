/** Who uses the console. A cookie that scripts cannot read has the token of a session. */
import { signal } from "@preact/signals";
import { api, Problem, type Schemas } from "./api/client";

export type Person = Schemas["Person"];

/** Whether this browser logged in; without accounts nobody needs to. */
const LOGGED_IN = "conspectus-logged-in";
export const loggedIn = (): boolean => localStorage.getItem(LOGGED_IN) !== null;

/** Whether this browser logged in, and its session is over: it expired, or somebody ended it. */
export const sessionEnded = (): boolean => loggedIn() && person.value === null && !signInFailed;

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

/**
 * Another tab of this browser logged in or out. What a screen shows is of the person before, so it is loaded again
 * for another one.
 */
async function followOtherTab(event: StorageEvent): Promise<void> {
  if (event.key !== LOGGED_IN || person.value === undefined) return;
  const before = person.value;
  await resume();
  if (before !== null && person.value !== null && person.value.id !== before.id) location.reload();
}
addEventListener("storage", (event) => {
  // Without an answer of the server, the next request says what is wrong.
  followOtherTab(event).catch(() => undefined);
});

export async function login(credential: { key: string } | { invitation: string }): Promise<void> {
  const user = await api.createSession(credential);
  rememberLogin(BY_CREDENTIAL);
  person.value = user;
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
const BY_CREDENTIAL = "yes";
const SIGN_IN_FAILED = "#sign-in=failed";
/** Where the browser goes on after a sign-in; the server itself sends it nowhere but to the console. */
const RETURN_PATH = "conspectus-return-path";

/** Says how this browser logged in, to its other tabs too: only a value that differs is an event for them. */
function rememberLogin(way: string): void {
  localStorage.removeItem(LOGGED_IN);
  localStorage.setItem(LOGGED_IN, way);
}

export interface Provider {
  /** null: nobody signs in with a provider here. */
  name: string | null;
  /** Address of the server at which people sign in. */
  address: string;
}

/** The page on which this tab began a sign-in. */
function readReturnPath(): string | null {
  const path = sessionStorage.getItem(RETURN_PATH);
  return path?.startsWith("/console/") ? path : null;
}

/** Whether the last sign-in with the provider failed. The next one leads to the same page. */
export const signInFailed = location.hash === SIGN_IN_FAILED;
if (signInFailed) history.replaceState(null, "", readReturnPath() ?? location.pathname + location.search);

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
  if (sessionStorage.getItem(RETURN_PATH) === null) return;
  const path = readReturnPath();
  sessionStorage.removeItem(RETURN_PATH);
  rememberLogin(BY_PROVIDER);
  if (path !== null) history.replaceState(null, "", path);
}

/** Logs out here, and then at the provider, if the login was one there. */
export async function logout(): Promise<void> {
  const signedInAtProvider = localStorage.getItem(LOGGED_IN) === BY_PROVIDER;
  await api.deleteSession();
  localStorage.removeItem(LOGGED_IN);
  person.value = null;
  if (signedInAtProvider) location.assign(`${SIGN_IN}/end`);
}

/** Who uses the console. The key is in a cookie that scripts cannot read. */
import { signal } from "@preact/signals";
import { api, Problem, take, type Schemas } from "./api/client";

export type Person = Schemas["Person"];

/** Whether this browser logged in; without accounts nobody needs to. */
const LOGGED_IN = "conspectus-logged-in";
export const loggedIn = (): boolean => localStorage.getItem(LOGGED_IN) !== null;

/** undefined: not known yet; null: a key is needed. */
export const person = signal<Person | null | undefined>(undefined);

/** Asks the server who the session belongs to. Throws Problem if it does not answer. */
export async function resume(): Promise<void> {
  try {
    person.value = await take(api.GET("/api/v1/me"));
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    person.value = null;
  }
}

export async function login(key: string): Promise<void> {
  const response = await fetch("/api/v1/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ key }),
  });
  const body = await response.json();
  if (!response.ok) throw new Problem(response.status, body.code, body.detail ?? body.title, "");
  localStorage.setItem(LOGGED_IN, "yes");
  person.value = body;
}

export async function logout(): Promise<void> {
  await fetch("/api/v1/session", { method: "DELETE" });
  localStorage.removeItem(LOGGED_IN);
  person.value = null;
}

/** Shares lists that many screens begin with: each is read once, until its time is over or it is forgotten. */
export class ListCache {
  readonly #lists = new Map<string, { list: Promise<unknown>; expires: number }>();
  readonly #lifetime: number;
  readonly #now: () => number;

  /** `lifetime` is in milliseconds. */
  constructor(lifetime: number, now: () => number = Date.now) {
    this.#lifetime = lifetime;
    this.#now = now;
  }

  /** The list of a name, which `load` reads where it is not here; one that failed is read again. */
  read<T>(name: string, load: () => Promise<T>): Promise<T> {
    const stored = this.#lists.get(name);
    if (stored !== undefined && stored.expires > this.#now()) return stored.list as Promise<T>;
    const list = load();
    this.#lists.set(name, { list, expires: this.#now() + this.#lifetime });
    list.catch(() => {
      if (this.#lists.get(name)?.list === list) this.#lists.delete(name);
    });
    return list;
  }

  /** Forgets a list that was changed, or all of them. */
  forget(name?: string): void {
    if (name === undefined) this.#lists.clear();
    else this.#lists.delete(name);
  }
}

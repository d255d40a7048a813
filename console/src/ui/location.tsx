/** Places in documents: one address for all that cites, and one link to it. */
import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";

/** Characters of a text, counted as the API does: by code points, the end not included. */
export interface Span {
  start: number;
  end: number;
}

/** A document with the characters that are cited, or with a chunk of it. */
export interface Location {
  document: string;
  span?: Span | undefined;
  chunk?: number | undefined;
}

/** The path of a location in the console, for its router. */
export function pathOf({ document, span, chunk }: Location): string {
  const fields = new URLSearchParams();
  if (span !== undefined) {
    fields.set("start", String(span.start));
    fields.set("end", String(span.end));
  }
  if (chunk !== undefined) fields.set("chunk", String(chunk));
  const query = fields.toString();
  return `/documents/${encodeURIComponent(document)}${query === "" ? "" : `?${query}`}`;
}

/** The characters that an address cites; undefined where it has none, or none that can be. */
export function citedSpan(fields: URLSearchParams): Span | undefined {
  const [start, end] = [integerOf(fields.get("start")), integerOf(fields.get("end"))];
  return start !== undefined && end !== undefined && start < end ? { start, end } : undefined;
}

const integerOf = (digits: string | null): number | undefined =>
  digits !== null && /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;

/** A link that opens a document with the cited place marked. */
export function LocationLink({
  location,
  children = "Open in the document",
}: {
  location: Location;
  children?: ComponentChildren;
}) {
  return (
    <Link class="link" href={pathOf(location)}>
      {children}
    </Link>
  );
}

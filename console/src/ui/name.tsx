/** The name of a document, the same everywhere: its title or first words, who wrote it, and where it is. */
import type { ComponentChildren } from "preact";
import { nameOf, type Named } from "./naming";

/** Two lines: the name with its author, and below it the source with the key. Directions of writing stay inside. */
export function Name({ document, children }: { document: Named; children?: ComponentChildren }) {
  const { author, source = "", key } = document;
  const location = source === "" ? key : `${source} / ${key}`;
  return (
    <span class="name">
      <b class="ellipsis block-line">
        <bdi>{nameOf(document)}</bdi>
        {author != null && author !== "" && (
          <span class="name-author">
            , <bdi>{author}</bdi>
          </span>
        )}
      </b>
      <span class="tiny dim ellipsis block-line">
        {children} <bdi>{location}</bdi>
      </span>
    </span>
  );
}

/** The text of a document with its passages, and the cited characters marked. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Schemas } from "../../api/client";
import type { Span } from "../../ui/location";

type Chunk = Schemas["Chunk"];

/** Pixels of the text before the mark that stay in view. */
const MARGIN = 48;

interface Piece extends Span {
  text: string;
  /** The position of its passage, or −1 between passages. */
  chunk: number;
}

/** The text, cut where passages begin and end. Where two overlap, it belongs to the chosen one, else to the first. */
function pieces(letters: readonly string[], chunks: readonly Chunk[], selected: number): Piece[] {
  const parts: Piece[] = [];
  let at = 0;
  const add = (end: number, chunk: number) => {
    if (end > at) parts.push({ text: letters.slice(at, end).join(""), start: at, end, chunk });
    at = Math.max(at, end);
  };
  chunks.forEach((chunk, number) => {
    add(chunk.start, -1);
    add(number < selected ? Math.min(chunk.end, chunks[selected]?.start ?? chunk.end) : chunk.end, number);
  });
  add(letters.length, -1);
  return parts;
}

export function MarkedText({
  text,
  chunks,
  selected,
  cited,
  onChoose,
}: {
  text: string;
  chunks: readonly Chunk[];
  /** The position of the chosen passage, or −1. */
  selected: number;
  /** The characters that are marked in place of a passage. */
  cited: Span | undefined;
  onChoose: (at: number) => void;
}) {
  const letters = useMemo(() => Array.from(text), [text]);
  const parts = useMemo(() => pieces(letters, chunks, selected), [letters, chunks, selected]);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    const mark = panel.current?.querySelector("mark");
    if (panel.current !== null && mark) panel.current.scrollTop = mark.offsetTop - MARGIN;
  }, [selected, cited?.start, cited?.end]);
  return (
    <article ref={panel} class="panel text marked" aria-label="Text of the document" tabIndex={0}>
      {parts.map((piece) =>
        piece.chunk === selected && selected >= 0 ? (
          <mark key={piece.start}>{piece.text}</mark>
        ) : (
          <span key={piece.start} class={piece.chunk >= 0 ? "piece" : undefined} onClick={() => onChoose(piece.chunk)}>
            <Cited piece={piece} letters={letters} cited={selected >= 0 ? undefined : cited} />
          </span>
        ),
      )}
    </article>
  );
}

/** A piece with those of its characters marked that are cited. */
function Cited({ piece, letters, cited }: { piece: Piece; letters: readonly string[]; cited: Span | undefined }) {
  if (cited === undefined) return <>{piece.text}</>;
  const start = Math.max(piece.start, cited.start);
  const end = Math.min(piece.end, cited.end);
  if (start >= end) return <>{piece.text}</>;
  return (
    <>
      {letters.slice(piece.start, start).join("")}
      <mark class="cited">{letters.slice(start, end).join("")}</mark>
      {letters.slice(end, piece.end).join("")}
    </>
  );
}

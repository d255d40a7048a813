import { useEffect, useMemo, useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { Virtual } from "../../ui/virtual";
import { clockOf } from "./lines";

type Caption = Schemas["Caption"];

const ROW = 52;

/** Captions in order of time; those of a moment that was found stand out. A live stream adds its own. */
export function Captions({
  captions,
  moments,
  at,
  onMore,
  placed: { collection, stream },
  isWhole,
}: {
  captions: readonly Caption[];
  moments: readonly Schemas["Moment"][];
  /** Seconds that are kept in view. */
  at: number | undefined;
  /** Loads later captions, where there are some. */
  onMore: (() => void) | undefined;
  placed: { collection: string; stream: Schemas["Stream"] };
  /** Whether the captions are those of the whole stream, so that new ones belong to them. */
  isWhole: boolean;
}) {
  const live = useLive(collection, stream, isWhole && onMore === undefined);
  const rows = useMemo(() => {
    const ids = new Set(captions.map((caption) => caption.document.id));
    return [...captions, ...live.filter((caption) => !ids.has(caption.document.id))];
  }, [captions, live]);
  const matchingIds = new Set(moments.flatMap((moment) => moment.captions.map((caption) => caption.document.id)));
  const first = moments[0]?.captions[0]?.document.id;
  const selected = at === undefined ? rows.findIndex((caption) => caption.document.id === first) : nearest(rows, at);
  const clock = clockOf(stream);
  return (
    <section class="captions" aria-label="Captions">
      <h2>Captions {stream.live && <span class="tag good">live</span>}</h2>
      <div class="after">
        <Virtual rows={rows} height={ROW} label="Captions" selected={selected < 0 ? undefined : selected} follow={at !== undefined}>
          {(caption) => (
            <div class={matchingIds.has(caption.document.id) ? "caption hit" : "caption"}>
              <span class="small dim">{caption.start === null ? "" : clock(caption.start)}</span>
              <span class="caption-text" title={caption.text}>
                {caption.text}
                {matchingIds.has(caption.document.id) && <span class="sr"> (found)</span>}
              </span>
            </div>
          )}
        </Virtual>
      </div>
      {onMore !== undefined && (
        <p class="cluster after">
          <button class="btn" type="button" onClick={onMore}>
            Load later captions
          </button>
        </p>
      )}
    </section>
  );
}

function nearest(rows: readonly Caption[], at: number): number {
  const later = rows.findIndex((caption) => (caption.start ?? 0) > at);
  return later < 0 ? rows.length - 1 : Math.max(later - 1, 0);
}

/** Captions of a live stream as they come. */
function useLive(collection: string, stream: Schemas["Stream"], isWanted: boolean): readonly Caption[] {
  const [captions, add] = useState<Caption[]>([]);
  useEffect(() => {
    if (!stream.live || !isWanted) return;
    const address = `/api/v1/streams/${encodeURIComponent(stream.source.id)}/stream`;
    const events = new EventSource(`${address}?collection=${encodeURIComponent(collection)}`);
    events.addEventListener("caption", (event) => {
      const { caption } = JSON.parse((event as MessageEvent<string>).data) as { caption: Caption };
      add((before) => [...before, caption]);
    });
    return () => events.close();
  }, [collection, stream, isWanted]);
  return captions;
}

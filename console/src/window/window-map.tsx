import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useRef } from "preact/hooks";
import { wholeNumber } from "../ui/format";
import { useSize } from "../ui/size";
import type { Passage } from "./anatomy";

const GAP = 3;
const LOW = 84;
const FLAT = 50;
const NARROW = 64;

/** The passages as areas in reading order: an area is its tokens, to scale. */
export function WindowMap({
  passages,
  selected,
  onSelect,
  lost,
  shared,
  alone,
}: {
  passages: readonly Passage[];
  selected?: number | undefined;
  onSelect: (number: number) => void;
  lost?: ReadonlySet<number> | undefined;
  /** Numbers of passages that are in the other window of a comparison, too. */
  shared?: ReadonlySet<number> | undefined;
  /** Whether it stands without the bar above it. */
  alone?: boolean;
}) {
  const element = useRef<HTMLDivElement>(null);
  const size = useSize(element);
  const root = hierarchy<{ children?: readonly Passage[] } | Passage>({ children: passages }, (node) =>
    "children" in node ? node.children : undefined,
  ).sum((node) => ("tokens" in node ? node.tokens : 0));
  const areas = treemap<{ children?: readonly Passage[] } | Passage>()
    .tile(treemapSquarify)
    .size([size.width, size.height])
    .paddingOuter(GAP)
    .paddingInner(GAP)
    .round(true)(root)
    .leaves();
  return (
    <div ref={element} class={alone === true ? "map alone" : "map"} role="group" aria-label="Passages in reading order">
      {size.width > 0 &&
        passages.length > 0 &&
        areas.map((area) => {
          const passage = area.data as Passage;
          const [width, height] = [area.x1 - area.x0, area.y1 - area.y0];
          const shades = [
            "block",
            passage.cut && "cut",
            lost?.has(passage.number) && "lost",
            shared?.has(passage.number) && "shared",
            selected === passage.number && "on",
            height < FLAT ? "flat" : height < LOW && "low",
          ];
          const hidden = width < NARROW || height < 22 ? "sr" : undefined;
          const name = passage.citation.key || passage.citation.title;
          return (
            <button
              key={passage.number}
              type="button"
              class={shades.filter(Boolean).join(" ")}
              style={{ left: `${area.x0}px`, top: `${area.y0}px`, width: `${width}px`, height: `${height}px` }}
              aria-pressed={selected === passage.number}
              onClick={() => onSelect(passage.number)}
            >
              <b class={hidden}>
                [{passage.number}] {name}
              </b>
              <span class={hidden}>{lastHeading(passage.citation.heading)}</span>
              <strong class={hidden}>
                {wholeNumber(passage.tokens)}
                <i class="sr"> tokens{passage.cut && ", cut"}</i>
              </strong>
            </button>
          );
        })}
    </div>
  );
}

/** The innermost heading of a path such as "Guide > Backup". */
export function lastHeading(heading: string | null | undefined): string {
  return heading?.split(" > ").at(-1) ?? "";
}

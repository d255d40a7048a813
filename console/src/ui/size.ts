import { useLayoutEffect, useState } from "preact/hooks";

/** The size of an element in pixels, also when it changes; 0 before it is laid out. */
export function useSize(element: { current: HTMLElement | null }) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const measured = element.current;
    if (measured === null) return;
    const measure = () => setSize({ width: measured.clientWidth, height: measured.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(measured);
    return () => observer.disconnect();
  }, []);
  return size;
}

const NARROW = "(max-width: 820px)";

/** Whether the window is as narrow as a phone, also when that changes. */
export function useIsNarrow(): boolean {
  const [isNarrow, set] = useState(() => matchMedia(NARROW).matches);
  useLayoutEffect(() => {
    const query = matchMedia(NARROW);
    const change = () => set(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isNarrow;
}

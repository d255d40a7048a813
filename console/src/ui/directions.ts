/** Characters that turn the direction of a text are shown as a mark: a title must not read otherwise than it is. */
import { options } from "preact";

const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;
const MARK = "\ufffd";

/** A text with a mark in place of each character that turns its direction; it has as many characters. */
export const withoutTurns = (text: string): string => text.replace(TURNS, MARK);

/** Shows every text of every screen so. A text is a node without a type, whose props are the text. */
export function showTurns(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    const text: unknown = node.props;
    if (typeof text === "string") node.props = withoutTurns(text) as never;
    before?.(node);
  };
}

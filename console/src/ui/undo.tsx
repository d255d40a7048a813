/** Corrections that can be undone: the last one, and a bar that says what was done. */
import { useState } from "preact/hooks";
import { useAction } from "./action";

/** A correction, as it can be told and undone. */
export interface Correction {
  /** What was done, as a sentence. */
  done: string;
  undo: () => Promise<unknown>;
}

export interface Undoing {
  busy: boolean;
  failure: string;
  /** The last correction; undefined where none was made, or it was undone. */
  last: Correction | undefined;
  /** Makes a correction. `request` returns how it is undone. */
  apply: (done: string, request: () => Promise<() => Promise<unknown>>) => Promise<boolean>;
  undo: () => void;
}

/** Makes corrections one at a time; `onChanged` is called after each one and after an undo. */
export function useUndo(onChanged: () => void): Undoing {
  const { busy, failure, act } = useAction();
  const [last, setLast] = useState<Correction>();
  const apply: Undoing["apply"] = (done, request) =>
    new Promise((resolve) => {
      const succeed = (undo: () => Promise<unknown>) => {
        setLast({ done, undo });
        onChanged();
        resolve(true);
      };
      act(request, succeed, () => resolve(false));
    });
  const undo = () => last !== undefined && act(last.undo, () => (setLast(undefined), onChanged()));
  return { busy, failure, last, apply, undo };
}

/** What was corrected last, with a button that undoes it. */
export function UndoBar({ of: { last, busy, undo } }: { of: Undoing }) {
  if (last === undefined) return null;
  return (
    <div class="note-bar undo-bar" role="status">
      <span>{last.done}</span>
      <button class="btn" type="button" disabled={busy} onClick={undo}>
        Undo
      </button>
    </div>
  );
}

/** Actions that a person starts: one at a time, with the reason why the last one failed. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./controls";
import { asProblem, messageOf } from "./load";

export interface Action {
  busy: boolean;
  /** Why the last action failed, or nothing. */
  failure: string;
  /** Starts an action; `done` gets its answer if it succeeds, and `failed` is called otherwise. */
  act: <T>(request: () => Promise<T>, done?: (answer: T) => void, failed?: () => void) => void;
}

export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [failure, fail] = useState("");
  const run = async <T,>(request: () => Promise<T>, done?: (answer: T) => void, failed?: () => void) => {
    setBusy(true);
    try {
      const answer = await request();
      fail("");
      done?.(answer);
    } catch (error) {
      fail(messageOf(asProblem(error)));
      failed?.();
    }
    setBusy(false);
  };
  return { busy, failure, act: (request, done, failed) => void run(request, done, failed) };
}

export function Failure({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <p class="failed" role="alert">
      {text}
    </p>
  );
}

/** A button that asks before it acts. The question stays, with the reason, where the action fails. */
export function ConfirmButton({
  label,
  name,
  title,
  confirm = label,
  danger = true,
  children,
  run,
  onDone,
}: {
  label: string;
  /** The button by its accessible name, where the label alone does not say what it is about. */
  name: string;
  /** The question. */
  title: string;
  /** The words of the button that acts. */
  confirm?: string;
  /** Whether the action takes something away. */
  danger?: boolean;
  /** What the action does. */
  children?: ComponentChildren;
  run: () => Promise<unknown>;
  onDone: () => void;
}) {
  const [open, show] = useState(false);
  const { act, busy, failure } = useAction();
  const done = () => {
    show(false);
    onDone();
  };
  return (
    <>
      <button class={danger ? "btn compact danger" : "btn compact"} type="button" aria-label={name} onClick={() => show(true)}>
        {label} …
      </button>
      {open && (
        <Dialog title={title} onClose={() => show(false)}>
          <div class="sub">{children}</div>
          <Failure text={failure} />
          <p class="cluster after">
            <button
              class={danger ? "btn danger" : "btn primary"}
              type="button"
              disabled={busy}
              onClick={() => act(run, done)}
            >
              {confirm}
            </button>
          </p>
        </Dialog>
      )}
    </>
  );
}

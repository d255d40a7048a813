/** Corrections of memories: text, fact, validity, pin, exclusion from search; each can be undone. */
import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure } from "../../ui/action";
import { Dialog, TimeField } from "../../ui/controls";
import { instantOf, localTime } from "../../ui/format";
import { useUndo, type Undoing } from "../../ui/undo";
import type { Memory, Scope } from "./lanes";

type Changes = Schemas["UpdateMemoryBody"];

export interface Corrections extends Undoing {
  change: (memory: Memory, changes: Changes, done: string) => Promise<boolean>;
  /** Makes an earlier version the current one again. */
  restore: (current: Memory, version: Memory) => void;
  /** Takes a memory out of all searches until a reviewer releases it. */
  exclude: (memory: Memory) => Promise<boolean>;
}

/** What a version states, as a change that brings it back. */
const contentOf = ({ text, fact, valid_from, valid_until, pinned }: Memory): Changes => ({
  text,
  fact,
  valid_from,
  valid_until,
  pinned,
});

/** The fields of `before` that a change replaces. */
function replacedBy(changes: Changes, before: Memory): Changes {
  const content = contentOf(before);
  return Object.fromEntries(Object.entries(content).filter(([name]) => name in changes));
}

/** Corrects memories of a scope; `onChanged` is called after each correction and after an undo. */
export function useCorrections(scope: Scope, onChanged: () => void): Corrections {
  const undoing = useUndo(onChanged);
  const update = (memory: string, changes: Changes) => api.updateMemory({ memory, ...scope, ...changes });
  const change = (memory: Memory, changes: Changes, done: string) =>
    undoing.apply(done, async () => {
      const headers = { "If-Match": `"${memory.document.fingerprint}"` };
      await api.updateMemory({ memory: memory.id, ...scope, ...changes }, { headers });
      return () => update(memory.id, replacedBy(changes, memory));
    });
  return {
    ...undoing,
    change,
    restore: (current, version) => void change(current, contentOf(version), "An earlier version is the current one."),
    exclude: (memory) =>
      undoing.apply("The memory is excluded from search.", async () => {
        await update(memory.id, { trust: "quarantined" });
        return () => api.releaseQuarantined({ document: memory.id });
      }),
  };
}

interface Draft {
  text: string;
  subject: string;
  predicate: string;
  object: string;
  from: string;
  until: string;
  pinned: boolean;
}

function draftOf({ text, fact, valid_from: from, valid_until: until, pinned }: Memory): Draft {
  return {
    text,
    subject: fact?.subject ?? "",
    predicate: fact?.predicate ?? "",
    object: fact?.object ?? "",
    from: from === null ? "" : localTime(from),
    until: until === null ? "" : localTime(until),
    pinned,
  };
}

/** The changes between a memory and its draft: only fields that differ. */
function changesOf(memory: Memory, draft: Draft): Changes {
  const before = draftOf(memory);
  const differs = (...names: (keyof Draft)[]) => names.some((name) => before[name] !== draft[name]);
  const changes: Changes = {};
  if (differs("text")) changes.text = draft.text;
  if (memory.fact !== null && differs("subject", "predicate", "object")) {
    const { subject, predicate, object } = draft;
    changes.fact = { ...memory.fact, subject, predicate, object };
  }
  if (differs("from")) changes.valid_from = instantOf(draft.from);
  if (differs("until")) changes.valid_until = instantOf(draft.until);
  if (differs("pinned")) changes.pinned = draft.pinned;
  return changes;
}

const DONE: Partial<Record<keyof Changes, string>> = {
  text: "The text is corrected.",
  fact: "The fact is corrected.",
  valid_from: "Its beginning is changed.",
  valid_until: "Its end is changed.",
};

/** A memory with its fields to be changed: what it says, when it holds, whether it is pinned or excluded. */
export function CorrectDialog({
  memory,
  corrections,
  onClose,
}: {
  memory: Memory;
  corrections: Corrections;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(memory));
  const set = (fields: Partial<Draft>) => setDraft({ ...draft, ...fields });
  const changes = changesOf(memory, draft);
  const isUnchanged = Object.keys(changes).length === 0;
  const closeIf = (done: Promise<boolean>) => void done.then((isDone) => isDone && onClose());
  const save = () => {
    const [first] = Object.keys(changes) as (keyof Changes)[];
    const pin = draft.pinned ? "The memory is pinned." : "The memory is no longer pinned.";
    closeIf(corrections.change(memory, changes, (first && DONE[first]) ?? pin));
  };
  return (
    <Dialog title="Correct this memory" busy={corrections.busy} onClose={onClose}>
      <form
        class="correct-form"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <label>
          <span class="label">Text</span>
          <textarea class="field" rows={3} required value={draft.text} onInput={(event) => set({ text: event.currentTarget.value })} />
        </label>
        {memory.fact !== null && (
          <fieldset class="correct-fact">
            <legend class="label">The fact that it states</legend>
            {(["subject", "predicate", "object"] as const).map((name) => (
              <input
                key={name}
                class="field"
                required
                aria-label={name}
                value={draft[name]}
                onInput={(event) => set({ [name]: event.currentTarget.value })}
              />
            ))}
          </fieldset>
        )}
        <div class="correct-times">
          <TimeField label="Holds from" time={draft.from} onTime={(from) => set({ from })} />
          <TimeField label="Holds until" time={draft.until} onTime={(until) => set({ until })}>
            <button class="btn compact" type="button" onClick={() => set({ until: localTime(new Date()) })}>
              Now
            </button>
          </TimeField>
        </div>
        <label class="small">
          <input type="checkbox" checked={draft.pinned} onChange={(event) => set({ pinned: event.currentTarget.checked })} /> Pinned:
          rules never delete it
        </label>
        <Failure text={corrections.failure} />
        <p class="cluster">
          <button class="btn primary" type="submit" disabled={isUnchanged || corrections.busy}>
            Save
          </button>
          <button class="btn" type="button" disabled={corrections.busy} onClick={() => closeIf(corrections.exclude(memory))}>
            Exclude from search
          </button>
        </p>
        <p class="tiny dim">The state before stays as a version. An excluded memory waits under Operations, Quarantine.</p>
      </form>
    </Dialog>
  );
}

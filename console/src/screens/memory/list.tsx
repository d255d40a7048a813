/** The memories as a list, which is the accessible form of the lanes, and what can be done with each. */
import { useState } from "preact/hooks";
import { Failure } from "../../ui/action";
import { Dialog } from "../../ui/controls";
import { counted, day, instant } from "../../ui/format";
import { LocationLink } from "../../ui/location";
import { Receipt as Receipted } from "../../ui/receipt";
import { UndoBar } from "../../ui/undo";
import { CorrectDialog, useCorrections, type Corrections } from "./correct";
import { figures, ForgetDialog } from "./forget";
import { knownAt, type Frame, type Lane, type Memory, type Receipt, type Scope } from "./lanes";

export function Memories({
  memories,
  versions,
  lanes,
  at,
  scope,
  onChanged,
  onForgotten,
}: {
  memories: readonly Memory[];
  versions: ReadonlyMap<string, readonly Memory[]>;
  lanes: readonly Lane[];
  at: number;
  scope: Scope;
  /** Called when a memory was corrected, or a correction undone. */
  onChanged: () => void;
  onForgotten: (receipt: Receipt) => void;
}) {
  const [forgetting, forget] = useState<Memory>();
  const [correcting, correct] = useState<Memory>();
  const corrections = useCorrections(scope, onChanged);
  const ids = new Set(lanes.map((lane) => knownAt(lane, at)?.id));
  return (
    <section aria-label="Memories">
      <h2>{counted(memories.length, "memory", "memories")}</h2>
      <Failure text={corrections.failure} />
      <ul class="list after">
        {memories.map((memory) => (
          <li key={memory.id} class="memory-row">
            <span class="memory-text">
              <span class="text">{memory.text}</span>
              <Validity of={memory} />
              <Origin of={memory} />
            </span>
            <span class="small dim">{ids.has(memory.id) ? "known then" : "known at another time"}</span>
            <span class="small dim">since {instant(memory.document.recorded)}</span>
            <span>{memory.pinned && <span class="tag good">pinned</span>}</span>
            <span class="cluster memory-actions">
              <button class="btn compact" type="button" onClick={() => correct(memory)}>
                Correct …
              </button>
              <button class="btn compact danger" type="button" onClick={() => forget(memory)}>
                Forget …
              </button>
            </span>
            <Versions of={versions.get(memory.id) ?? []} corrections={corrections} />
          </li>
        ))}
      </ul>
      <UndoBar of={corrections} />
      {correcting !== undefined && (
        <CorrectDialog memory={correcting} corrections={corrections} onClose={() => correct(undefined)} />
      )}
      {forgetting !== undefined && (
        <ForgetDialog
          memory={forgetting}
          scope={scope}
          onClose={(receipt) => {
            forget(undefined);
            if (receipt !== undefined) onForgotten(receipt);
          }}
        />
      )}
    </section>
  );
}

/** What a memory states, and from when to when it holds in the world. */
function Validity({ of: { fact, valid_from: from, valid_until: until } }: { of: Memory }) {
  const validity = [from !== null && `from ${day(from)}`, until !== null && `until ${day(until)}`].filter(Boolean).join(" ");
  if (fact === null && validity === "") return null;
  return (
    <span class="small dim block-line">
      {fact !== null && `${fact.subject} · ${fact.predicate} · ${fact.object}`}
      {validity !== "" && `${fact === null ? "" : ", "}holds ${validity}`}
    </span>
  );
}

/** The sentence of the turn that a fact was extracted from, for facts that were. */
function Origin({ of: { cites } }: { of: Memory }) {
  if (cites === null) return null;
  return (
    <span class="small block-line">
      <LocationLink location={{ document: cites.memory, span: { start: cites.start, end: cites.end } }}>
        Open the sentence that states it
      </LocationLink>
    </span>
  );
}

/** The places of forgotten memories, with their receipts. The server keeps nothing of them, so this page does. */
export function Forgotten({ frames }: { frames: readonly Frame[] }) {
  const [receipt, setReceipt] = useState<Receipt>();
  if (frames.length === 0) return null;
  return (
    <section aria-label="Forgotten">
      <h2>{counted(frames.length, "version")} forgotten</h2>
      <ul class="list after">
        {frames.map((frame, at) => (
          <li key={at} class="row">
            <span class="small dim">
              known from {instant(new Date(frame.from))} to {instant(new Date(frame.until))}
            </span>
            <button class="btn compact" type="button" onClick={() => setReceipt(frame.receipt)}>
              Receipt
            </button>
          </li>
        ))}
      </ul>
      {receipt !== undefined && (
        <Dialog title="Receipt" onClose={() => setReceipt(undefined)}>
          <Receipted figures={figures(receipt)} />
        </Dialog>
      )}
    </section>
  );
}

/** The versions of a memory, where there is more than one; an earlier one can become the current one again. */
function Versions({ of: versions, corrections }: { of: readonly Memory[]; corrections: Corrections }) {
  const current = versions.at(-1);
  if (versions.length < 2 || current === undefined) return null;
  return (
    <details class="memory-versions small">
      <summary>{versions.length} versions</summary>
      <ol>
        {versions.map((version, at) => (
          <li key={at}>
            <span class="memory-text">
              <span class="text">{version.text}</span>
              <Validity of={version} />
            </span>
            <span class="dim">
              known from {instant(version.known_from)}
              {versions[at + 1] !== undefined && ` to ${instant(versions[at + 1]?.known_from ?? "")}`}
            </span>
            {version === current ? (
              <span class="dim">current</span>
            ) : (
              <button
                class="btn compact"
                type="button"
                disabled={corrections.busy}
                onClick={() => corrections.restore(current, version)}
              >
                Restore
              </button>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

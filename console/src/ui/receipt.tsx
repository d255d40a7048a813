import { useState } from "preact/hooks";
import { Failure, useAction } from "./action";
import { CopyButton, Dialog } from "./controls";

type Figures = Record<string, string | number | boolean | null | undefined>;

const formatFigure = (value: Figures[string]): string => (value === true ? "yes" : value === false ? "no" : String(value ?? "–"));

/** What was deleted; it looks like something to keep. */
export function Receipt({ figures }: { figures: Figures }) {
  const entries = Object.entries(figures).map(([name, value]) => [name.replaceAll("_", " "), formatFigure(value)] as const);
  return (
    <>
      <dl class="receipt">
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt class="dim">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="cluster after">
        <CopyButton text={entries.map(([name, value]) => `${name}: ${value}`).join("\n")} label="Copy the receipt" />
      </p>
    </>
  );
}

/** Asks before a deletion, says what goes, and then shows the receipt. */
export function DeleteDialog({
  title,
  preview,
  purges = true,
  remove,
  onClose,
}: {
  title: string;
  /** What the deletion takes away. */
  preview: Figures;
  /** Whether the deletion can be a purge. */
  purges?: boolean;
  /** Deletes, and answers with the receipt. */
  remove: (purge: boolean) => Promise<Figures>;
  onClose: (deleted: boolean) => void;
}) {
  const [purge, setPurge] = useState(false);
  const { act, busy, failure } = useAction();
  const [receipt, received] = useState<Figures>();
  return (
    <Dialog
      title={receipt === undefined ? title : "Receipt"}
      busy={busy}
      onClose={() => onClose(receipt !== undefined)}
    >
      {receipt !== undefined ? (
        <Receipt figures={receipt} />
      ) : (
        <>
          <p class="sub">This cannot be undone. It deletes:</p>
          <dl class="receipt after">
            {Object.entries(preview).map(([name, value]) => (
              <div key={name}>
                <dt class="dim">{name}</dt>
                <dd>{formatFigure(value)}</dd>
              </div>
            ))}
          </dl>
          {purges && (
            <label class="cluster after">
              <input type="checkbox" checked={purge} onChange={(event) => setPurge(event.currentTarget.checked)} />
              Purge: answer when no file holds the text any more
            </label>
          )}
          <Failure text={failure} />
          <p class="cluster after">
            <button class="btn danger" type="button" disabled={busy} onClick={() => act(() => remove(purge), received)}>
              {busy ? "Deleting …" : "Delete"}
            </button>
          </p>
        </>
      )}
    </Dialog>
  );
}

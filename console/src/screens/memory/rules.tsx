import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { counted, instant, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";
import { DeleteDialog } from "../../ui/receipt";
import { figures } from "./forget";
import type { Receipt, Scope } from "./lanes";

type Rule = Schemas["RetentionRule"];

const isOf = (rule: Rule, { user, agent, conversation }: Scope): boolean =>
  rule.scope.user === user && rule.scope.agent === agent && rule.scope.conversation === conversation;

/** The rule by which old memories of a scope are deleted, what it deletes now, and a form to change it. */
export function RetentionRules({ scope, onForgotten }: { scope: Scope; onForgotten: (receipt: Receipt) => void }) {
  const { collection, ...names } = scope;
  const [deleting, remove] = useState<Receipt>();
  const [receipt, keep] = useState<Receipt>();
  const rules = useLoad((signal) => api.listRetentions({ collection }, { signal }), [collection]);
  const { act, busy, failure } = useAction();
  const apply = (dry_run: boolean) => api.applyRetention({ collection, scope: names, dry_run });
  return (
    <section class="panel" aria-label="Retention rule">
      <h2>Retention rule</h2>
      <Show of={rules} what="the rules">
        {(ruleList) => {
          const rule = ruleList.find((candidate) => isOf(candidate, scope));
          return (
            <>
              <p class="sub small">{sentence(rule)}</p>
              <RuleForm
                key={JSON.stringify(rule?.retention)}
                rule={rule}
                busy={busy}
                onSave={(retention) => act(() => api.setRetention({ collection, ...names, ...retention }), rules.reload)}
                onDelete={() => act(() => api.deleteRetention({ collection, ...names }), rules.reload)}
              />
              {rule !== undefined && (
                <p class="cluster after">
                  <button class="btn" type="button" disabled={busy} onClick={() => act(() => apply(true), remove)}>
                    Preview and apply …
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Show>
      <Failure text={failure} />
      {deleting !== undefined && (
        <DeleteDialog
          title="Apply the rule now?"
          preview={{ memories: wholeNumber(deleting.memories), versions: wholeNumber(deleting.versions), edges: wholeNumber(deleting.edges) }}
          purges={false}
          remove={async () => {
            const forgotten = await apply(false);
            keep(forgotten);
            return figures(forgotten);
          }}
          onClose={(deleted) => {
            remove(undefined);
            if (deleted && receipt !== undefined) onForgotten(receipt);
          }}
        />
      )}
    </section>
  );
}

function sentence(rule: Rule | undefined): string {
  if (rule === undefined) return "There is none: memories stay until they are forgotten.";
  const { days, max_count: count } = rule.retention;
  const limits = [
    days !== null && `older than ${counted(days, "day")}`,
    count !== null && `beyond the newest ${wholeNumber(count)} of a conversation`,
  ].filter(Boolean);
  const last = rule.last_run === null ? "It has not run yet." : `It ran last on ${instant(rule.last_run)}.`;
  return `Memories ${limits.join(", and those ")} are deleted; pinned ones and notes stay. ${last}`;
}

function RuleForm({
  rule,
  busy,
  onSave,
  onDelete,
}: {
  rule: Rule | undefined;
  busy: boolean;
  onSave: (retention: { days: number | null; max_count: number | null }) => void;
  onDelete: () => void;
}) {
  const [days, setDays] = useState(rule?.retention.days?.toString() ?? "");
  const [count, setCount] = useState(rule?.retention.max_count?.toString() ?? "");
  const number = (text: string) => (text === "" ? null : Number(text));
  return (
    <form
      class="cluster after"
      onSubmit={(event) => {
        event.preventDefault();
        onSave({ days: number(days), max_count: number(count) });
      }}
    >
      <label class="small dim cluster">
        Keep for days
        <input
          class="field rule-number"
          type="number"
          min="0"
          step="any"
          value={days}
          onInput={(event) => setDays(event.currentTarget.value)}
        />
      </label>
      <label class="small dim cluster">
        Keep the newest
        <input
          class="field rule-number"
          type="number"
          min="0"
          value={count}
          onInput={(event) => setCount(event.currentTarget.value)}
        />
      </label>
      <button class="btn" type="submit" disabled={busy || (days === "" && count === "")}>
        Set the rule
      </button>
      {rule !== undefined && (
        <button class="btn danger" type="button" disabled={busy} onClick={onDelete}>
          Delete the rule
        </button>
      )}
    </form>
  );
}

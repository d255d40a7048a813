import { api, type Schemas } from "../../api/client";
import { person } from "../../session";
import { Failure, useAction } from "../../ui/action";
import { useLoad } from "../../ui/load";

type Feedback = Schemas["Feedback"];
type Verdict = "used" | "wrong";

const VERDICTS: readonly (readonly [Verdict, string])[] = [
  ["used", "Used"],
  ["wrong", "Wrong"],
];

const NEWEST = 1000;

/** Whether a passage answers the question; it moves similar questions for everyone. */
export function Judge({
  query,
  collection,
  chunks,
  onChange,
}: {
  query: string;
  collection: string;
  chunks: readonly number[];
  onChange: () => void;
}) {
  const { act, busy, failure } = useAction();
  const feedbacks = useLoad(
    async (signal) => (await api.listFeedback({ collection, limit: NEWEST }, { signal })).feedback,
    [collection],
  );
  const ownFeedbacks = (feedbacks.data ?? []).filter((feedback) => isOn(feedback, query, chunks));
  const present = ownFeedbacks[0] === undefined ? undefined : ownFeedbacks[0].used ? "used" : "wrong";
  const judge = (verdict: Verdict) =>
    act(
      async () => {
        if (verdict !== present) await api.addFeedback({ query, [verdict]: [...chunks] });
        else await Promise.all(ownFeedbacks.map((feedback) => api.revokeFeedback({ feedback: feedback.id })));
      },
      () => {
        feedbacks.reload();
        onChange();
      },
    );
  return (
    <div class="judge" role="group" aria-label="Feedback on the passage">
      <span class="small dim">For this question it was</span>
      <span class="cluster">
        {VERDICTS.map(([verdict, name]) => (
          <button
            key={verdict}
            class="chip"
            type="button"
            aria-pressed={verdict === present}
            disabled={busy || feedbacks.data === undefined}
            onClick={() => judge(verdict)}
          >
            {name}
          </button>
        ))}
      </span>
      <Failure text={failure} />
    </div>
  );
}

const isOn = (feedback: Feedback, query: string, chunks: readonly number[]): boolean =>
  feedback.user === person.value?.id && feedback.query === query.trim() && chunks.includes(feedback.chunk);

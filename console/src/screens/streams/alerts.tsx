import { useEffect, useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client";
import { Failure, useAction } from "../../ui/action";
import { instant } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";

type Match = Schemas["AlertEvent"];

const KEPT = 50;

/** The alerts of a collection and their matches, the newest on top, as they come. */
export function Alerts({ collection }: { collection: string }) {
  const alerts = useLoad((signal) => api.listAlerts({ collection }, { signal }), [collection]);
  const earlier = useLoad((signal) => api.listAlertMatches({}, { signal }), []);
  const [matches, add] = useState<Match[]>([]);
  const [query, type] = useState("");
  const { act, failure } = useAction();
  useEffect(() => {
    const events = new EventSource("/api/v1/alerts/stream");
    events.addEventListener("alert", (event) => {
      const match = JSON.parse((event as MessageEvent<string>).data) as Match;
      add((before) => [match, ...before].slice(0, KEPT));
    });
    return () => events.close();
  }, []);
  const create = () => {
    const body = { name: query, query, collection };
    act(() => api.putAlert(body), () => (type(""), alerts.reload()));
  };
  const remove = (alert: string) =>
    act(() => api.deleteAlert({ alert }), alerts.reload);
  const names = new Set(alerts.data?.map((alert) => alert.id));
  const numbers = new Set(matches.map((match) => match.number));
  const allMatches = [...matches, ...[...(earlier.data ?? [])].reverse().filter((match) => !numbers.has(match.number))];
  return (
    <section class="panel" aria-label="Alerts">
      <h2>Alerts</h2>
      <form
        class="cluster after"
        onSubmit={(event) => {
          event.preventDefault();
          create();
        }}
      >
        <input
          class="field alert-query"
          required
          aria-label="What to be alerted to"
          placeholder="a van at the door"
          value={query}
          onInput={(event) => type(event.currentTarget.value)}
        />
        <button class="btn" type="submit">
          Add alert
        </button>
      </form>
      <Failure text={failure} />
      <Show of={alerts} what="the alerts">
        {(alertList) => (
          <ul class="list after">
            {alertList.map((alert) => (
              <li key={alert.id} class="row">
                <span>{alert.query || alert.name}</span>
                <button
                  class="btn compact danger"
                  type="button"
                  aria-label={`Delete the alert ${alert.name}`}
                  onClick={() => remove(alert.id)}
                >
                  Delete
                </button>
              </li>
            ))}
          </ul>
        )}
      </Show>
      <ol class="list" aria-label="Matches of alerts" aria-live="polite">
        {allMatches
          .filter((match) => names.has(match.alert))
          .map((match) => (
            <li key={match.number}>
              <p class="row">
                <b>{match.name}</b>
                <span class="tiny dim">{instant(match.created)}</span>
              </p>
              <p class="small">{match.text}</p>
            </li>
          ))}
      </ol>
    </section>
  );
}

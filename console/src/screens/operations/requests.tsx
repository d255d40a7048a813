import { api } from "../../api/client";
import { counted, instant, milliseconds, wholeNumber } from "../../ui/format";
import { Show, useLoad } from "../../ui/load";

const HOURS = 24;
const NEWEST = 100;

/** Requests to model providers: how many, how slow, how often they failed. */
export function Requests() {
  const loaded = useLoad(async (signal) => {
    const [totals, newest] = await Promise.all([
      api.requestTotals({ hours: HOURS }, { signal }),
      api.listRequests({ limit: NEWEST }, { signal }),
    ]);
    return { totals, newest };
  }, []);
  return (
    <Show of={loaded} what="the requests">
      {({ totals, newest }) => {
        const all = totals.reduce((sum, total) => sum + total.requests, 0);
        return (
          <>
            <h1>{counted(all, "request")} to model providers in the last 24 hours</h1>
            {all === 0 && <p class="sub">The built-in models run in this process, and make no requests.</p>}
            <ul class="list after">
              {totals.map((total) => (
                <li key={`${total.kind}/${total.model}`} class="requests-row">
                  <span>
                    <b>{total.model}</b> <span class="small dim">{total.kind}</span>
                  </span>
                  <span class="small num">{counted(total.requests, "request")}</span>
                  <span class="small num">{counted(total.tokens, "token")}</span>
                  <span class="small num dim">{milliseconds(total.mean_latency)} on average</span>
                  <span class={total.errors > 0 ? "tag bad" : "small dim"}>
                    {total.errors > 0 ? `${wholeNumber(total.errors)} failed, ${total.error_rate} %` : "none failed"}
                  </span>
                </li>
              ))}
            </ul>
            {newest.length > 0 && (
              <section>
                <h2>The newest</h2>
                <ul class="list after">
                  {newest.map((request) => (
                    <li key={request.id} class="requests-row">
                      <span>
                        <b>{request.model}</b> <span class="small dim">{request.kind}</span>
                        {request.error !== null && <span class="failed block-line">{request.error}</span>}
                      </span>
                      <span class="small num">{counted(request.inputs, "text")}</span>
                      <span class="small num">{counted(request.tokens, "token")}</span>
                      <span class="small num dim">{milliseconds(request.latency)}</span>
                      <span class="small dim">{instant(request.created)}</span>
                    </li>
                  ))}
                </ul>
              </section>
            )}
          </>
        );
      }}
    </Show>
  );
}

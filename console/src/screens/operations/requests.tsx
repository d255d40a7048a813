import { api } from "../../api/client";
import { counted, instant, milliseconds, whole } from "../../ui/format";
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
        const all = totals.reduce((sum, each) => sum + each.requests, 0);
        return (
          <>
            <h1>{counted(all, "request")} to model providers in the last 24 hours</h1>
            {all === 0 && <p class="sub">The built-in models run in this process, and make no requests.</p>}
            <ul class="list after">
              {totals.map((each) => (
                <li key={`${each.kind}/${each.model}`} class="requests-row">
                  <span>
                    <b>{each.model}</b> <span class="small dim">{each.kind}</span>
                  </span>
                  <span class="small num">{counted(each.requests, "request")}</span>
                  <span class="small num">{counted(each.tokens, "token")}</span>
                  <span class="small num dim">{milliseconds(each.mean_latency)} on average</span>
                  <span class={each.errors > 0 ? "tag bad" : "small dim"}>
                    {each.errors > 0 ? `${whole(each.errors)} failed, ${each.error_rate} %` : "none failed"}
                  </span>
                </li>
              ))}
            </ul>
            {newest.length > 0 && (
              <section>
                <h2>The newest</h2>
                <ul class="list after">
                  {newest.map((each) => (
                    <li key={each.id} class="requests-row">
                      <span>
                        <b>{each.model}</b> <span class="small dim">{each.kind}</span>
                        {each.error !== null && <span class="failed block-line">{each.error}</span>}
                      </span>
                      <span class="small num">{counted(each.inputs, "text")}</span>
                      <span class="small num">{counted(each.tokens, "token")}</span>
                      <span class="small num dim">{milliseconds(each.latency)}</span>
                      <span class="small dim">{instant(each.created)}</span>
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

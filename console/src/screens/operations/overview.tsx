import { useEffect, useState } from "preact/hooks";
import { api, take, type Schemas } from "../../api/client";
import { counted, instant, whole } from "../../ui/format";
import { hasEnded } from "../../ui/job";
import { asProblem, Show, useLoad } from "../../ui/load";
import { person } from "../../session";

type Job = Schemas["Job"];
type Collection = Schemas["CollectionStatus"];

const JOBS = 50;
const RUNNING_MS = 2_000;
const IDLE_MS = 15_000;

export function Overview() {
  const status = useLoad((signal) => take(api.GET("/api/v1/status", { signal })), []);
  const jobs = useLoad(
    (signal) => take(api.GET("/api/v1/jobs", { params: { query: { limit: JOBS } }, signal })),
    [],
  );
  const running = jobs.data?.jobs.some((each) => !hasEnded(each)) ?? false;
  useEffect(() => {
    const again = () => {
      if (document.hidden) return;
      jobs.reload();
      status.reload();
    };
    const timer = setInterval(again, running ? RUNNING_MS : IDLE_MS);
    return () => clearInterval(timer);
  }, [running]);
  return (
    <Show of={{ ...status, busy: false }} what="the status">
      {(found) => (
        <>
          <Needs collections={found.collections} jobs={jobs.data?.jobs ?? []} />
          <Storage status={found} />
          <Show of={{ ...jobs, busy: false }} what="the jobs">
            {(page) => <Jobs jobs={page.jobs} reload={jobs.reload} />}
          </Show>
          {person.value?.owner === true && <Check />}
        </>
      )}
    </Show>
  );
}

/** What needs a person, in one sentence. */
function Needs({ collections, jobs }: { collections: readonly Collection[]; jobs: readonly Job[] }) {
  const failed = jobs.filter((each) => each.state === "failed").length;
  const needs = [
    failed > 0 && `${counted(failed, "job")} failed`,
    ...collections.map((each) => each.errors > 0 && `${counted(each.errors, "document")} of ${each.name} failed`),
    ...collections.map((each) => each.lag > 0 && `the index of ${each.name} is ${counted(each.lag, "change")} behind`),
    ...collections.map((each) => each.pending > 0 && `${counted(each.pending, "passage")} of ${each.name} ${each.pending === 1 ? "waits" : "wait"} for vectors`),
  ].filter((each): each is string => typeof each === "string");
  return (
    <h1>
      {needs.length === 0
        ? "Nothing needs you."
        : `${needs.length === 1 ? "1 thing needs" : `${needs.length} things need`} you: ${needs.join("; ")}.`}
    </h1>
  );
}

function Storage({ status }: { status: Schemas["Status"] }) {
  const { collections } = status;
  const most = Math.max(...collections.map((each) => each.chunks), 1);
  if (collections.length === 0) return <p class="sub">There is no collection that you may read completely.</p>;
  return (
    <section>
      <h2>Collections</h2>
      <p class="sub small">
        {status.path !== "" && (
          <>
            {whole(status.bytes)} bytes in <span class="mono">{status.path}</span>.{" "}
          </>
        )}
        Version {status.version}. Bars are passages, to scale.
      </p>
      <ul class="list after">
        {collections.map((each) => (
          <li key={each.name} class="stored">
            <b class="ellipsis">{each.name}</b>
            <span class="meter" style={{ width: `${(each.chunks / most) * 100}%` }} />
            <span class="small num">{counted(each.chunks, "passage")}</span>
            <span class="small num dim">{counted(each.documents, "document")}</span>
            <span class="small num dim">index {counted(each.index.bytes, "byte")}</span>
            <span class="small dim ellipsis">{each.space ?? "no vectors"}</span>
            <span class={each.lag > 0 ? "tag" : "small dim"}>
              {each.lag > 0 ? `${whole(each.lag)} behind` : "index up to date"}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Jobs({ jobs, reload }: { jobs: readonly Job[]; reload: () => void }) {
  const [failure, fail] = useState("");
  const act = async (request: Promise<unknown>) => {
    try {
      await request;
      fail("");
    } catch (error) {
      fail(asProblem(error).message);
    }
    reload();
  };
  return (
    <section>
      <h2>Jobs</h2>
      {jobs.length === 0 && <p class="sub">No jobs ran yet. Uploads, syncs and summaries become jobs.</p>}
      {failure !== "" && (
        <p class="failed" role="alert">
          {failure}
        </p>
      )}
      <ul class="list after">
        {jobs.map((each) => {
          const params = { path: { job: each.id } };
          return (
            <li key={each.id} class="operations-job">
              <span class="operations-title">
                <b class="block-line">{each.title}</b>
                <span class="tiny dim">
                  {each.kind.replaceAll("_", " ")}, {instant(each.created)}, {counted(each.attempts, "attempt")}
                </span>
                {each.error !== null && <span class="failed block-line">{each.error}</span>}
              </span>
              {hasEnded(each) ? (
                <span />
              ) : (
                <progress max={each.total || 1} value={each.done} aria-label={`Progress of ${each.title}`} />
              )}
              <span class={each.state === "failed" ? "tag bad" : "tag"}>
                {each.state}
                {each.total > 0 && ` ${whole(each.done)} of ${whole(each.total)}`}
              </span>
              {each.state === "failed" || each.state === "cancelled" ? (
                <button
                  class="btn compact"
                  type="button"
                  onClick={() => void act(take(api.POST("/api/v1/jobs/{job}/retry", { params })))}
                >
                  Retry
                </button>
              ) : hasEnded(each) ? (
                <span />
              ) : (
                <button
                  class="btn compact danger"
                  type="button"
                  onClick={() => void act(take(api.POST("/api/v1/jobs/{job}/cancel", { params })))}
                >
                  Cancel
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Compares the indexes with the records, on request: it reads everything. */
function Check() {
  const [asked, ask] = useState(0);
  const report = useLoad((signal) => (asked === 0 ? undefined : take(api.GET("/api/v1/check", { signal }))), [asked]);
  return (
    <section class="panel">
      <div class="row">
        <h2>Check</h2>
        <button class="btn" type="button" disabled={report.busy} onClick={() => ask(asked + 1)}>
          {report.busy ? "Checking …" : "Check now"}
        </button>
      </div>
      <p class="sub small">Compares the indexes with the records, and checks the database. Nothing is repaired.</p>
      {asked > 0 && (
        <Show of={report} what="the report">
          {({ clean, records, index }) => (
            <>
              <p class="after">
                {clean ? <span class="tag good">clean</span> : <span class="tag bad">problems were found</span>}
              </p>
              <dl class="receipt after">
                <div>
                  <dt class="dim">records</dt>
                  <dd>{records.length === 0 ? "clean" : records.join("; ")}</dd>
                </div>
                {Object.entries(index).map(([name, problems]) => (
                  <div key={name}>
                    <dt class="dim">index of {name}</dt>
                    <dd>
                      {problems.length === 0
                        ? "clean"
                        : problems.map((each) => `passage ${each.chunk} is ${each.problem}: ${each.detail}`).join("; ")}
                    </dd>
                  </div>
                ))}
              </dl>
            </>
          )}
        </Show>
      )}
    </section>
  );
}

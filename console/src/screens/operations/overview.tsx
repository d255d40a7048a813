import { useEffect, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, type Schemas } from "../../api/client";
import { ifAllowed, inCollections, readPages } from "../../api/lists";
import { person } from "../../session";
import { useAddress } from "../../ui/address";
import { choiceField } from "../../ui/address-fields";
import { counted, wholeNumber } from "../../ui/format";
import { hasEnded } from "../../ui/job";
import { Show, useLoad } from "../../ui/load";
import { Jobs, SELECTIONS, type Selected } from "./jobs";

type Collection = Schemas["CollectionStatus"];

const FIELDS = { state: choiceField<Selected | "">(["", ...SELECTIONS]) };
const JOBS = 50;
const MAX_JOBS = 100;
const RUNNING_MS = 2_000;
const IDLE_MS = 15_000;

export function Overview() {
  const [{ state }, setFields] = useAddress(FIELDS);
  const selected = state === "" ? undefined : state;
  const [count, setCount] = useState(JOBS);
  const status = useLoad((signal) => api.status({}, { signal }), []);
  const quarantine = useLoad(quarantined, []);
  const jobs = useLoad((signal) => readJobs(count, selected, signal), [count, selected]);
  const running = jobs.data?.rows.some((job) => !hasEnded(job)) ?? false;
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
      {(report) => (
        <>
          <Needs collections={report.collections} counts={jobs.data?.counts ?? {}} quarantine={quarantine.data ?? []} />
          <Storage status={report} />
          <Show of={{ ...jobs, busy: false }} what="the jobs">
            {({ rows, next, counts }) => (
              <Jobs
                jobs={rows}
                counts={counts}
                selected={selected}
                onSelect={(selection) => setFields({ state: selection })}
                more={next === null ? undefined : () => setCount(count + JOBS)}
                reload={jobs.reload}
              />
            )}
          </Show>
          {person.value?.owner === true && <Check />}
        </>
      )}
    </Show>
  );
}

/** The newest jobs, of one state or of all, and how many there are of each. */
async function readJobs(count: number, selected: Selected | undefined, signal: AbortSignal) {
  const condition = selected === "partial" ? { outcome: selected } : selected === undefined ? {} : { state: selected };
  const [page, report] = await Promise.all([
    readPages(count, MAX_JOBS, async (limit, after) => {
      const query = { limit, after, ...condition };
      const { jobs, next } = await api.listJobs(query, { signal });
      return { rows: jobs, next };
    }),
    api.ingestReport({}, { signal }),
  ]);
  const counts: Readonly<Record<string, number>> = { ...report.states, partial: report.partial };
  return { ...page, counts };
}

/** The collections that the person manages and that have quarantined texts. */
const quarantined = (signal: AbortSignal): Promise<string[]> =>
  inCollections(signal, async (collection) => {
    const page = api.listQuarantined({ collection, limit: 1 }, { signal });
    const quarantinedDocuments = await ifAllowed(page.then(({ documents }) => documents));
    return quarantinedDocuments.length > 0 ? [collection] : [];
  });

/** What needs a person, each with a link to where it is mended. */
function Needs({
  collections,
  counts,
  quarantine,
}: {
  collections: readonly Collection[];
  /** The number of jobs by state, and of those that succeeded in part. */
  counts: Readonly<Record<string, number>>;
  /** Names of collections with quarantined texts. */
  quarantine: readonly string[];
}) {
  const needs: (readonly [string, string])[] = [];
  const { failed = 0, partial = 0 } = counts;
  if (failed > 0) needs.push([`${counted(failed, "job")} failed`, "/operations?state=failed"]);
  if (partial > 0) needs.push([`${counted(partial, "job")} did a part of its work only`, "/operations?state=partial"]);
  for (const name of quarantine) {
    const review = `/operations?part=quarantine&collection=${encodeURIComponent(name)}`;
    needs.push([`quarantined texts of ${name} wait for your review`, review]);
  }
  for (const { name, errors, fault, lag, pending, unindexable } of collections) {
    const documents = `/documents?collection=${encodeURIComponent(name)}`;
    const stored = `#${rowId(name)}`;
    if (errors > 0) needs.push([`${counted(errors, "document")} of ${name} failed`, `${documents}&status=error`]);
    if (unindexable > 0) {
      const what = `keywords do not find ${counted(unindexable, "passage")} of ${name}`;
      needs.push([what, `${documents}&status=unindexable`]);
    }
    if (fault !== null) needs.push([`the index of ${name} cannot be used: ${fault}`, stored]);
    else if (lag > 0) needs.push([`the index of ${name} is ${counted(lag, "change")} behind`, stored]);
    if (pending > 0) {
      needs.push([`${counted(pending, "passage")} of ${name} ${pending === 1 ? "waits" : "wait"} for vectors`, stored]);
    }
  }
  if (needs.length === 0) return <h1>Nothing needs you.</h1>;
  return (
    <>
      <h1>{needs.length === 1 ? "1 thing needs you" : `${needs.length} things need you`}</h1>
      <ul class="after" aria-label="What needs you">
        {needs.map(([what, where]) => (
          <li key={what}>
            {where.startsWith("#") ? (
              <a class="link" href={where}>
                {what}
              </a>
            ) : (
              <Link class="link" href={where}>
                {what}
              </Link>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The row of a collection, to be linked. */
const rowId = (collection: string): string => `stored-${encodeURIComponent(collection)}`;

function Storage({ status }: { status: Schemas["Status"] }) {
  const { collections } = status;
  const most = Math.max(...collections.map((collection) => collection.chunks), 1);
  if (collections.length === 0) return <p class="sub">There is no collection that you may read completely.</p>;
  return (
    <section>
      <h2>Collections</h2>
      <p class="sub small">
        {status.path !== "" && (
          <>
            {wholeNumber(status.bytes)} bytes in <span class="mono">{status.path}</span>.{" "}
          </>
        )}
        Version {status.version}. Bars are passages, to scale.
      </p>
      <ul class="list after">
        {collections.map((collection) => (
          <li key={collection.name} id={rowId(collection.name)} class="stored" tabIndex={-1}>
            <b class="ellipsis">{collection.name}</b>
            <span class="meter" style={{ width: `${(collection.chunks / most) * 100}%` }} />
            <span class="small num">{counted(collection.chunks, "passage")}</span>
            <span class="small num dim">{counted(collection.documents, "document")}</span>
            <span class="small num dim">index {counted(collection.index.bytes, "byte")}</span>
            <span class="small dim ellipsis">{collection.space ?? "no vectors"}</span>
            {collection.fault !== null ? (
              <span class="tag bad">index cannot be used</span>
            ) : (
              <span class={collection.lag > 0 ? "tag" : "small dim"}>
                {collection.lag > 0 ? `${wholeNumber(collection.lag)} behind` : "index up to date"}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Compares the indexes with the records, on request: it reads everything. */
function Check() {
  const [checkCount, setCheckCount] = useState(0);
  const report = useLoad((signal) => (checkCount === 0 ? undefined : api.check({}, { signal })), [checkCount]);
  return (
    <section class="panel">
      <div class="row">
        <h2>Check</h2>
        <button class="btn" type="button" disabled={report.busy} onClick={() => setCheckCount(checkCount + 1)}>
          {report.busy ? "Checking …" : "Check now"}
        </button>
      </div>
      <p class="sub small">Compares the indexes with the records, and checks the database. Nothing is repaired.</p>
      {checkCount > 0 && (
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
                        : problems.map((problem) => `passage ${problem.chunk} is ${problem.problem}: ${problem.detail}`).join("; ")}
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

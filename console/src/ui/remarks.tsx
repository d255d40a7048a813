import type { Schemas } from "../api/client";
import { counted } from "./format";

export type Remark = readonly [name: string, text: string];

const MOST_SHOWN = 20;

/** Remarks on files under a title, one for each name; those after the first twenty are folded. */
export function Remarks({
  title,
  remarks,
  failed = false,
}: {
  title: string;
  remarks: readonly Remark[];
  failed?: boolean;
}) {
  if (remarks.length === 0) return null;
  const folded = remarks.slice(MOST_SHOWN);
  return (
    <div>
      <p class="label">{title}</p>
      <Rows remarks={remarks.slice(0, MOST_SHOWN)} failed={failed} />
      {folded.length > 0 && (
        <details>
          <summary>{counted(folded.length, "more file")}</summary>
          <Rows remarks={folded} failed={failed} />
        </details>
      )}
    </div>
  );
}

function Rows({ remarks, failed }: { remarks: readonly Remark[]; failed: boolean }) {
  return (
    <ul>
      {remarks.map(([name, text]) => (
        <li key={name} class={failed ? "failed" : undefined}>
          <bdi>{name}</bdi>: {text}
        </li>
      ))}
    </ul>
  );
}

/** The reasons of failures by the names of files, which their messages begin with. */
export function failureRemarks(failures: readonly Pick<Schemas["FileFailure"], "name" | "reason">[]): Remark[] {
  return failures.map(({ name, reason }) => [name, reason.replace(`${name}: `, "")] as const);
}

/** What a job says of its files: which failed or were skipped and why, and its notices. */
export function FileRemarks({ result }: { result: Schemas["Job"]["result"] }) {
  const failures = failureRemarks(listFailures(result?.failures));
  const skipped = namedRemarks(result?.skipped_files);
  const notices = namedRemarks(result?.notices);
  if (failures.length + skipped.length + notices.length === 0) return null;
  return (
    <div class="job-files small">
      <Remarks title="Cannot be read" remarks={failures} failed />
      <Remarks title="Skipped" remarks={skipped} />
      <Remarks title="Notices" remarks={notices} />
    </div>
  );
}

/** How many failures the result of a job names. */
export const countFailures = (result: Schemas["Job"]["result"]): number => listFailures(result?.failures).length;

function listFailures(failures: unknown): { name: string; reason: string }[] {
  if (!Array.isArray(failures)) return [];
  return failures.map(({ name, reason }) => ({ name: String(name), reason: String(reason) }));
}

function namedRemarks(remarks: unknown): Remark[] {
  const isByName = typeof remarks === "object" && remarks !== null && !Array.isArray(remarks);
  return isByName ? Object.entries(remarks).map(([name, text]) => [name, String(text)] as const) : [];
}

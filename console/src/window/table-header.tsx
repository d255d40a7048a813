/** The names of the columns above rows of a table that are shown without them, as the document has them. */
export function TableHeader({ header, text }: { header: string | null; text: string | undefined }) {
  const lines = header?.trim() ?? "";
  if (lines === "" || text === undefined || text.includes(lines)) return null;
  return <span class="table-header dim">{`${lines}\n`}</span>;
}

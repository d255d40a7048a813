/** Searches, sorts and filters the list of documents. All of it is in the address. */
import { useEffect, useRef, useState } from "preact/hooks";
import {
  DAY_LABELS,
  labelOf,
  MEDIA_LABELS,
  restrictionsOf,
  SORT_LABELS,
  STATE_LABELS,
  type Selection,
} from "./selection";

const MS_OF_PAUSE = 250;

interface Props {
  selection: Selection;
  onSelect: (changes: Partial<Selection>) => void;
}

export function SelectionBar({ selection, onSelect }: Props) {
  const restrictions = restrictionsOf(selection);
  return (
    <div role="search" aria-label="Documents">
      <div class="selection-bar">
        <SearchField words={selection.words} onSearch={(words) => onSelect({ words })} />
        <Menu
          label="Sort by"
          options={Object.entries(SORT_LABELS)}
          value={selection.sort}
          onChoose={(sort) => onSelect({ sort: sort as Selection["sort"] })}
        />
        <Menu label="Type" options={MEDIA_LABELS} value={selection.media} onChoose={(media) => onSelect({ media })} />
        <Menu
          label="State"
          options={Object.entries(STATE_LABELS)}
          value={selection.status}
          onChoose={(status) => onSelect({ status: status as Selection["status"] })}
        />
        <Menu
          label="Time"
          options={DAY_LABELS.map(([days, label]) => [String(days), label] as const)}
          value={String(selection.days)}
          onChoose={(days) => onSelect({ days: Number(days) })}
        />
      </div>
      {restrictions.length > 0 && (
        <div class="chips" role="group" aria-label="Filters">
          {restrictions.map(({ label, without }) => (
            <button
              key={label}
              class="chip"
              type="button"
              aria-label={`Remove the filter ${label}`}
              onClick={() => onSelect(without)}
            >
              <span class="ellipsis">
                <bdi>{label}</bdi>
              </span>{" "}
              <span aria-hidden="true">×</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Searches after a pause in the typing. What is typed is replaced only while the field is not in use. */
function SearchField({ words, onSearch }: { words: string; onSearch: (words: string) => void }) {
  const [typed, type] = useState(words);
  const field = useRef<HTMLInputElement>(null);
  const search = useRef(onSearch);
  search.current = onSearch;
  useEffect(() => {
    if (document.activeElement !== field.current) type(words);
  }, [words]);
  useEffect(() => {
    if (typed.trim() === words.trim()) return;
    const timer = setTimeout(() => search.current(typed), MS_OF_PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      ref={field}
      class="field"
      type="search"
      aria-label="Search titles, keys and file names"
      placeholder="Search titles, keys and file names"
      maxLength={500}
      value={typed}
      onInput={(event) => type(event.currentTarget.value)}
    />
  );
}

function Menu({
  label,
  options,
  value,
  onChoose,
}: {
  label: string;
  options: readonly (readonly [string, string])[];
  value: string;
  onChoose: (value: string) => void;
}) {
  const isListed = options.some(([option]) => option === value);
  return (
    <select class="pick" aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([option, name]) => (
        <option key={option} value={option}>
          {name}
        </option>
      ))}
      {!isListed && <option value={value}>{labelOf(options, value)}</option>}
    </select>
  );
}

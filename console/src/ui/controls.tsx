/** Controls that several screens use. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Segmented<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly (readonly [T, string])[];
  /** The pressed one; undefined: none. */
  value: T | undefined;
  onChange: (value: T) => void;
}) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map(([key, name]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** One of several options, with its label above. */
export function SegmentedField<T extends string>(
  props: Parameters<typeof Segmented<T>>[0] & { children?: ComponentChildren },
) {
  return (
    <div>
      <span class="label">{props.label}</span>
      <Segmented {...props} />
      {props.children}
    </div>
  );
}

/** A modal dialog; Escape, its backdrop and its button close it. */
export function Dialog({
  title,
  busy = false,
  onClose,
  children,
}: {
  title: string;
  /** Whether something runs whose end the person must see: the dialog stays until then. */
  busy?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog
      ref={element}
      aria-label={title}
      onClose={onClose}
      onCancel={(event) => busy && event.preventDefault()}
      onClick={(event) => event.target === element.current && !busy && element.current?.close()}
    >
      <div class="row">
        <h2>{title}</h2>
        <button class="btn compact" type="button" disabled={busy} onClick={() => element.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const button = useRef<HTMLButtonElement>(null);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    if (button.current !== null) button.current.textContent = "Copied";
  };
  return (
    <button ref={button} class="btn compact" type="button" onClick={() => void copy()}>
      {label}
    </button>
  );
}


/** A field for one question, with its button. */
export function AskForm({
  label,
  placeholder,
  action,
  query,
  onAsk,
}: {
  label: string;
  placeholder: string;
  /** The words of the button. */
  action: string;
  /** What was asked last. */
  query: string;
  onAsk: (query: string) => void;
}) {
  const [typed, type] = useState(query);
  return (
    <form
      class="ask-form"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk(typed.trim());
      }}
    >
      <input
        class="field"
        aria-label={label}
        placeholder={placeholder}
        value={typed}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <button class="btn primary" type="submit">
        {action}
      </button>
    </form>
  );
}

/** A field for a date and a time, in the zone of the browser. */
export function TimeField({
  label,
  time,
  onTime,
  children,
}: {
  label: string;
  /** As the field takes it, or empty. */
  time: string;
  onTime: (time: string) => void;
  children?: ComponentChildren;
}) {
  return (
    <label>
      <span class="label">{label}</span>
      <span class="cluster">
        <input class="field date" type="datetime-local" aria-label={label} value={time} onChange={(event) => onTime(event.currentTarget.value)} />
        {children}
      </span>
    </label>
  );
}

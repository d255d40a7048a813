import { useRef, useState } from "preact/hooks";

/** Takes files that are dropped on it, or chosen. */
export function Drop({
  label,
  children,
  accept,
  onFiles,
}: {
  /** The name of the field. */
  label: string;
  /** What to drop. */
  children: string;
  accept?: string;
  onFiles: (files: readonly File[]) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const take = (files: FileList | null | undefined) => {
    if (files !== null && files !== undefined && files.length > 0) onFiles([...files]);
  };
  return (
    <div
      class={over ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      <p>{children}, or</p>
      <button class="btn" type="button" onClick={() => input.current?.click()}>
        Choose files
      </button>
      <input
        ref={input}
        class="sr"
        type="file"
        multiple
        accept={accept}
        tabIndex={-1}
        aria-label={label}
        onChange={(event) => take(event.currentTarget.files)}
      />
    </div>
  );
}

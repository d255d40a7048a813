import { useRef, useState } from "preact/hooks";

/** Takes files that are dropped on it, or chosen. */
export function Drop({
  label,
  children,
  accept,
  onFiles,
  readDrop,
}: {
  /** The name of the field. */
  label: string;
  /** What to drop. */
  children: string;
  accept?: string;
  onFiles: (files: readonly File[]) => void;
  /** Reads what was dropped, where folders are taken too. */
  readDrop?: (transfer: DataTransfer) => Promise<readonly File[]>;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const folder = useRef<HTMLInputElement>(null);
  const take = (files: FileList | null | undefined) => {
    if (files !== null && files !== undefined && files.length > 0) onFiles([...files]);
  };
  const drop = (transfer: DataTransfer | null) => {
    if (transfer === null) return;
    if (readDrop === undefined) take(transfer.files);
    else void readDrop(transfer).then((files) => files.length > 0 && onFiles(files));
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
        drop(event.dataTransfer);
      }}
    >
      <p>{children}, or</p>
      <button class="btn" type="button" onClick={() => input.current?.click()}>
        Choose files
      </button>
      {readDrop !== undefined && (
        <>
          <button class="btn" type="button" onClick={() => folder.current?.click()}>
            Choose a folder
          </button>
          <input
            ref={folder}
            class="sr"
            type="file"
            {...{ webkitdirectory: true }}
            tabIndex={-1}
            aria-label="Folder"
            onChange={(event) => take(event.currentTarget.files)}
          />
        </>
      )}
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

/** Files to upload: with the paths of the folders that they are in, and in batches that a request can carry. */

/** Most files of one upload; further ones are left out, and named as such. */
export const MAX_FILES = 10_000;
/** Most files and bytes of one request, below the limits that a server has by default. */
const MAX_BATCH_FILES = 50;
const MAX_BATCH_BYTES = 50_000_000;

export interface Selection {
  /** Their names are paths: `folder/page.md`, which become the keys. */
  files: readonly File[];
  /** Names of files that have the path of an earlier one. */
  repeated: readonly string[];
  /** Whether there were more than `MAX_FILES`. */
  isCut: boolean;
}

/** Files by their paths, each path once. */
export function selectionOf(files: readonly File[]): Selection {
  const byPath = new Map<string, File>();
  const repeated: string[] = [];
  for (const file of files.slice(0, MAX_FILES)) {
    const path = file.webkitRelativePath || file.name;
    if (byPath.has(path)) repeated.push(path);
    else byPath.set(path, withPath(file, path));
  }
  return { files: [...byPath.values()], repeated, isCut: files.length > MAX_FILES };
}

const withPath = (file: File, path: string): File =>
  file.name === path ? file : new File([file], path, { type: file.type, lastModified: file.lastModified });

/** The files in the order in which they are sent, cut into requests. */
export function batchesOf(files: readonly File[]): File[][] {
  const batches: File[][] = [];
  let bytes = 0;
  for (const file of files) {
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === MAX_BATCH_FILES || bytes + file.size > MAX_BATCH_BYTES) {
      batches.push([file]);
      bytes = file.size;
    } else {
      batch.push(file);
      bytes += file.size;
    }
  }
  return batches;
}

/** What was dropped, with the files of folders, read until there are more than `MAX_FILES`. */
export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  // The entries are gone once the event has ended, so all are taken before anything is awaited.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry());
  if (entries.every((entry) => entry === null)) return [...transfer.files];
  const files: File[] = [];
  for (const entry of entries) if (entry !== null) await readEntry(entry, files);
  return files;
}

async function readEntry(entry: FileSystemEntry, files: File[]): Promise<void> {
  if (files.length > MAX_FILES) return;
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    files.push(withPath(file, entry.fullPath.replace(/^\//, "")));
  } else if (isFolder(entry)) {
    const reader = entry.createReader();
    // A reader gives a folder in parts, and an empty one at its end.
    for (let part = await readPart(reader); part.length > 0; part = await readPart(reader)) {
      for (const child of part) await readEntry(child, files);
    }
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
const readPart = (reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> =>
  new Promise((resolve, reject) => reader.readEntries(resolve, reject));

import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { decodeOrThrow, integer, list, record, required, text } from '../../runtime/decode.ts';

/** The record's name in the folder of executables: no runtime asks for a plugin of this name. */
export const RECORD_FILE = '.tke-eni-installed.json';

/** One file that we put there, so that it can be told from what somebody put there after us. */
export type InstalledFile = {
  readonly name: string;
  readonly ino: number;
  readonly bytes: number;
  readonly mtimeMs: number;
};

/** What we put, or were about to put, into a folder. */
export type InstallRecord = {
  readonly files: readonly InstalledFile[];
  /** Names that were being installed when the record was last written: each may be there, whole, or not. */
  readonly intended: readonly string[];
};

const EMPTY: InstallRecord = { files: [], intended: [] };

const number = integer(0, Number.MAX_SAFE_INTEGER);
const decoder = record(
  {
    files: required(
      list(
        record(
          {
            name: required(text()),
            ino: required(number),
            bytes: required(number),
            mtimeMs: required(number),
          },
          'ignore',
        ),
      ),
    ),
    intended: required(list(text())),
  },
  'ignore',
);

/** Reads the record of a folder. One that is missing or damaged knows of nothing: then content alone can tell. */
export function readInstallRecord(binDir: string): InstallRecord {
  const path = join(binDir, RECORD_FILE);
  try {
    return decodeOrThrow(decoder, JSON.parse(readFileSync(path, 'utf8')), path);
  } catch {
    return EMPTY;
  }
}

/** Records that files of these names are about to be put there, before they are. @throws the file system's own error */
export function recordIntent(binDir: string, names: readonly string[]): void {
  const { files, intended } = readInstallRecord(binDir);
  write(binDir, { files, intended: [...new Set([...intended, ...names])] });
}

/** Records that the files of these names are ours as they are now. @throws the file system's own error */
export function recordInstalled(binDir: string, names: readonly string[]): void {
  const { files, intended } = readInstallRecord(binDir);
  const done = new Set(names);
  write(binDir, {
    files: [
      ...files.filter(({ name }) => !done.has(name)),
      ...names.flatMap((name) => identify(binDir, name)),
    ].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    intended: intended.filter((name) => !done.has(name)),
  });
}

/** Forgets that names were about to be put there: they were not. @throws the file system's own error */
export function forgetIntent(binDir: string, names: readonly string[]): void {
  const { files, intended } = readInstallRecord(binDir);
  write(binDir, { files, intended: intended.filter((name) => !names.includes(name)) });
}

/** Takes the record away, and what a killed agent left of one. Idempotent. @throws the file system's own error */
export function removeInstallRecord(binDir: string): void {
  const path = join(binDir, RECORD_FILE);
  if (statSync(binDir, { throwIfNoEntry: false }) === undefined) return;
  const unfinished = readdirSync(binDir).filter((name) => name.startsWith(`${RECORD_FILE}.`) && name.endsWith('.tmp'));
  for (const name of unfinished) rmSync(join(binDir, name), { force: true });
  rmSync(path, { force: true });
}

/** Tells whether the file of that name is still the one that was recorded. */
export function isAsRecorded(binDir: string, file: InstalledFile): boolean {
  const [now] = identify(binDir, file.name);
  return now !== undefined && now.ino === file.ino && now.bytes === file.bytes && now.mtimeMs === file.mtimeMs;
}

function identify(binDir: string, name: string): readonly InstalledFile[] {
  const stat = statSync(join(binDir, name), { throwIfNoEntry: false });
  return stat === undefined ? [] : [{ name, ino: stat.ino, bytes: stat.size, mtimeMs: Math.trunc(stat.mtimeMs) }];
}

/** An equal record is left alone: the disk is not written at each start. */
function write(binDir: string, content: InstallRecord): void {
  const path = join(binDir, RECORD_FILE);
  if (JSON.stringify(content) === JSON.stringify(readInstallRecord(binDir))) return;
  writeFileAtomically(path, `${JSON.stringify(content)}\n`, 0o644);
}

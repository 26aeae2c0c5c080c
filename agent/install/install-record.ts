import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import { decodeOrThrow, integer, list, optional, record, required, text } from '../../runtime/decode.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';

/** Name of the record in the folder of executables: no runtime looks for a plugin of this name. */
export const RECORD_FILE = '.tke-eni-installed.json';

/** One file that we installed, with what tells it from a file that replaced it later. */
export type InstalledFile = {
  readonly name: string;
  readonly ino: number;
  readonly bytes: number;
  readonly mtimeMs: number;
};

/** The files that we installed in a folder, or were about to install. */
export type InstallRecord = {
  readonly files: readonly InstalledFile[];
  /** Names whose installation had begun when the record was last written; each may exist, whole, or not. */
  readonly intended: readonly string[];
  /** Release of the agent that installed them; absent in records of 0.1.0. */
  readonly release?: string;
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
    release: optional(text()),
  },
  'ignore',
);

/** Largest record that is read, bytes: it has one line for each executable. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads the record of a folder. A missing or damaged one counts as empty: then only the content shows which files are
 * ours.
 */
export function readInstallRecord(binDir: string): InstallRecord {
  const path = join(binDir, RECORD_FILE);
  try {
    return decodeOrThrow(decoder, JSON.parse(readRegularText(path, MAX_BYTES)), path);
  } catch {
    return EMPTY;
  }
}

/** Records that files of these names will be installed; call it before that. @throws the file system's own error */
export function recordIntent(binDir: string, names: readonly string[]): void {
  const { intended, ...record } = readInstallRecord(binDir);
  write(binDir, { ...record, intended: [...new Set([...intended, ...names])] });
}

/**
 * Records that the present files of these names are ours, of this release.
 * @throws the file system's own error
 */
export function recordInstalled(binDir: string, names: readonly string[], release?: string): void {
  const { files, intended } = readInstallRecord(binDir);
  const done = new Set(names);
  write(binDir, {
    files: [
      ...files.filter(({ name }) => !done.has(name)),
      ...names.flatMap((name) => identify(binDir, name)),
    ].toSorted((a, b) => compareTexts(a.name, b.name)),
    intended: intended.filter((name) => !done.has(name)),
    ...(release === undefined ? {} : { release }),
  });
}

/** Removes names from the intent: they were not installed. @throws the file system's own error */
export function removeIntent(binDir: string, names: readonly string[]): void {
  const { intended, ...record } = readInstallRecord(binDir);
  write(binDir, { ...record, intended: intended.filter((name) => !names.includes(name)) });
}

/** Writes a record back that was removed. @throws the file system's own error */
export function restoreInstallRecord(binDir: string, content: InstallRecord): void {
  if (!existsSync(join(binDir, RECORD_FILE))) write(binDir, content);
}

/** Removes the record, and unfinished ones of a killed agent. Idempotent. @throws the file system's own error */
export function removeInstallRecord(binDir: string): void {
  const path = join(binDir, RECORD_FILE);
  if (statSync(binDir, { throwIfNoEntry: false }) === undefined) return;
  const unfinished = readdirSync(binDir).filter((name) => name.startsWith(`${RECORD_FILE}.`) && name.endsWith('.tmp'));
  for (const name of unfinished) rmSync(join(binDir, name), { force: true });
  rmSync(path, { force: true });
}

/** Reports whether the file of that name is still the recorded one. */
export function isAsRecorded(binDir: string, file: InstalledFile): boolean {
  const [now] = identify(binDir, file.name);
  return now !== undefined && now.ino === file.ino && now.bytes === file.bytes && now.mtimeMs === file.mtimeMs;
}

function identify(binDir: string, name: string): readonly InstalledFile[] {
  const stat = statSync(join(binDir, name), { throwIfNoEntry: false });
  return stat === undefined ? [] : [{ name, ino: stat.ino, bytes: stat.size, mtimeMs: Math.trunc(stat.mtimeMs) }];
}

/** Writes the record unless it is equal, so that the disk is not written at each start. */
function write(binDir: string, { files, intended, release }: InstallRecord): void {
  const path = join(binDir, RECORD_FILE);
  const content: InstallRecord = { files, intended, ...(release === undefined ? {} : { release }) };
  if (JSON.stringify(content) === JSON.stringify(readInstallRecord(binDir))) return;
  writeFileAtomically(path, `${JSON.stringify(content)}\n`, 0o644);
}

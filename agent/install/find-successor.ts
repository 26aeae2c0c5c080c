import { basename, relative } from 'node:path';
import { isNewerRelease, RELEASE, type Successor } from './decide-file.ts';
import { containsAll, isProgram } from './file-content.ts';
import { type InstallRecord, isAsRecorded, readInstallRecord } from './install-record.ts';
import { runOnHost } from './try-on-host.ts';

/** What is known of this agent's own installation. */
type OwnInstallation = {
  readonly binDir: string;
  readonly hostRoot: string;
  readonly release: string;
  /** The record that this agent wrote last; undefined before the first. */
  readonly record: InstallRecord | undefined;
};

/** What a Go program contains. @see https://pkg.go.dev/debug/buildinfo */
const GO_PROGRAM = '\xff Go buildinf:';

/**
 * Finds who put an executable in the place of ours: an agent that recorded it with its own release, a newer executable of ours
 * without a record, or the closed product, whose executables are Go programs and name themselves. Undefined: a program
 * that is not known, or a file that cannot be read.
 */
export async function findSuccessor(path: string, own: OwnInstallation): Promise<Successor | undefined> {
  const recorded = recordedRelease(path, own);
  if (recorded !== undefined)
    return isNewerRelease(own.release, recorded) ? undefined : { kind: 'release', release: recorded };
  try {
    if (await containsAll(path, [GO_PROGRAM, basename(path)])) return { kind: 'product' };
    const release = (await isProgram(path)) ? await readRelease(path, own.hostRoot) : undefined;
    return release !== undefined && isNewerRelease(release, own.release) ? { kind: 'release', release } : undefined;
  } catch {
    return undefined;
  }
}

/** The release in a record of another agent that has this very file; '0.0.0' in one of an agent that recorded none. */
function recordedRelease(path: string, { binDir, record }: OwnInstallation): string | undefined {
  const found = readInstallRecord(binDir);
  if (JSON.stringify(found) === JSON.stringify(record)) return undefined;
  const file = found.files.find(({ name }) => name === relative(binDir, path));
  return file !== undefined && isAsRecorded(binDir, file) ? (found.release ?? '0.0.0') : undefined;
}

async function readRelease(path: string, hostRoot: string): Promise<string | undefined> {
  const { code, output } = await runOnHost(hostRoot, path);
  return code === 0 && RELEASE.test(output) ? output : undefined;
}

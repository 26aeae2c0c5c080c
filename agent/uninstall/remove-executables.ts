import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CONFLIST_FILE } from '../install/conflist.ts';
import { digest, NEW_SUFFIX, PLUGIN_NAMES, REFERENCE_PLUGIN_NAMES } from '../install/executables.ts';
import { type InstallRecord, isAsRecorded, readInstallRecord, removeInstallRecord } from '../install/install-record.ts';
import type { Sweep } from './sweep.ts';

/** Where executables were put, and where they came from. */
export type ExecutablePlaces = {
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** '' when not known: then the record alone tells what is ours. */
  readonly pluginDir: string;
  /** '' when not known. */
  readonly referencePluginDir: string;
};

/**
 * Takes away the executables that we installed, and only those: a file is ours when it is the one that the record
 * names, or, where an installation was cut short or nobody recorded it, when its content is that of ours. A reference
 * plugin that another network configuration names stays. Idempotent; the record goes last.
 */
export async function removeExecutables(places: ExecutablePlaces, sweep: Sweep): Promise<void> {
  const { cniBinDir } = places;
  const record = readInstallRecord(cniBinDir);
  const others = readOtherConfs(places.cniConfDir);
  for (const name of [...PLUGIN_NAMES, ...REFERENCE_PLUGIN_NAMES]) {
    const path = join(cniBinDir, name);
    await sweep.step(path, async () => {
      rmSync(path + NEW_SUFFIX, { force: true });
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return;
      const isOwnName = PLUGIN_NAMES.some((own) => own === name);
      if (!(await isOurs(name, record, places))) {
        if (isOwnName) sweep.leave(`${path}: not the file that we installed`);
        return;
      }
      const user = others.find(({ text }) => new RegExp(`"type"\\s*:\\s*"${name}"`).test(text));
      if (user !== undefined && !isOwnName) {
        sweep.leave(`${path}: ${user.path} names it`);
        return;
      }
      rmSync(path, { force: true });
      sweep.removed('executable', path);
    });
  }
  if (!sweep.hasFailed()) removeInstallRecord(cniBinDir);
}

async function isOurs(name: string, record: InstallRecord, places: ExecutablePlaces): Promise<boolean> {
  const file = record.files.find((entry) => entry.name === name);
  if (file !== undefined && isAsRecorded(places.cniBinDir, file)) return true;
  const [own] = PLUGIN_NAMES;
  const isOwnName = PLUGIN_NAMES.some((known) => known === name);
  // Equal content of a reference plugin proves nothing, unless we were about to put it there.
  if (!isOwnName && !record.intended.includes(name)) return false;
  const source = isOwnName ? sourceOf(places.pluginDir, own) : sourceOf(places.referencePluginDir, name);
  return source !== undefined && (await isEqual(source, join(places.cniBinDir, name)));
}

function sourceOf(dir: string, name: string): string | undefined {
  return dir === '' ? undefined : join(dir, name);
}

async function isEqual(a: string, b: string): Promise<boolean> {
  const first = statSync(a, { throwIfNoEntry: false });
  const second = statSync(b, { throwIfNoEntry: false });
  if (first === undefined || second === undefined || first.size !== second.size) return false;
  return (await digest(a)) === (await digest(b));
}

/** Network configurations of others, as far as they can be read. */
function readOtherConfs(confDir: string): readonly { readonly path: string; readonly text: string }[] {
  try {
    return readdirSync(confDir)
      .filter((name) => /\.(conf|conflist|json)$/.test(name) && name !== CONFLIST_FILE)
      .map((name) => join(confDir, name))
      .flatMap((path) => {
        try {
          return [{ path, text: readFileSync(path, 'utf8') }];
        } catch {
          // A dangling link names nothing.
          return [];
        }
      });
  } catch {
    return [];
  }
}

import { lstatSync, readdirSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LAUNCHER, UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';
import { CONFLIST_FILE } from '../install/conflist.ts';
import { digest, NEW_SUFFIX } from '../install/file-content.ts';
import {
  type InstallRecord,
  isAsRecorded,
  RECORD_FILE,
  readInstallRecord,
  removeInstallRecord,
} from '../install/install-record.ts';
import {
  LAUNCHER_FILES,
  PLUGIN_LIBRARIES,
  PLUGIN_NAMES,
  REFERENCE_PLUGIN_NAMES,
  replacedPath,
} from '../install/planned-file.ts';
import type { Sweep } from './sweep.ts';

/** The folders to which executables were installed, and from which. */
type ExecutableFolders = {
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** '' when not known: then the record alone shows what is ours. */
  readonly pluginDir: string;
  /** '' when not known. */
  readonly referencePluginDir: string;
};

/**
 * Removes the executables that we installed, and only those. A file is ours when it is the one that the record names;
 * or, where an installation was interrupted or not recorded, when its content is equal to ours. A reference plugin
 * stays that another network configuration names, or may use without naming it. An executable of the closed product that
 * ours replaced gets its name back. Idempotent; the record is removed last.
 */
export async function removeExecutables(folders: ExecutableFolders, sweep: Sweep): Promise<void> {
  const { cniBinDir } = folders;
  const record = readInstallRecord(cniBinDir);
  const others = readOtherConfs(folders.cniConfDir);
  for (const name of [...PLUGIN_NAMES, ...LAUNCHER_FILES, ...REFERENCE_PLUGIN_NAMES, ...PLUGIN_LIBRARIES]) {
    const path = join(cniBinDir, name);
    await sweep.step(path, async () => {
      rmSync(path + NEW_SUFFIX, { force: true });
      const kept = findKept(path);
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return putBack(kept, path, sweep);
      const isOwnName = OWN_NAMES.has(name);
      if (!(await isOurs(name, record, folders))) {
        if (isOwnName) sweep.leave(`${path}: not the file that we installed`);
        return leaveKept(kept, sweep);
      }
      const user = isOwnName ? undefined : findUser(name, others);
      if (user !== undefined) {
        sweep.leave(`${path}: ${user}`);
        return leaveKept(kept, sweep);
      }
      if (kept === undefined) rmSync(path, { force: true });
      putBack(kept, path, sweep);
      sweep.removed(isLibrary(name) ? 'library' : 'executable', path);
    });
  }
  for (const folder of new Set(PLUGIN_LIBRARIES.map((name) => dirname(join(cniBinDir, name))))) {
    await sweep.step(folder, () => removeFolder(folder));
  }
  if (!sweep.hasFailed()) await sweep.step(join(cniBinDir, RECORD_FILE), () => removeInstallRecord(cniBinDir));
}

/** Returns where the executable that ours replaced is kept; undefined when there is none. */
function findKept(path: string): string | undefined {
  const kept = replacedPath(path);
  return lstatSync(kept, { throwIfNoEntry: false })?.isFile() === true ? kept : undefined;
}

/** Gives the executable that ours replaced its name back, in one step: a runtime finds ours or that one. */
function putBack(kept: string | undefined, path: string, sweep: Sweep): void {
  if (kept === undefined) return;
  renameSync(kept, path);
  sweep.restored(path, 'executable');
}

function leaveKept(kept: string | undefined, sweep: Sweep): void {
  if (kept === undefined) return;
  sweep.leave(`${kept}: an executable of the closed product that ours replaced; another file has its name`);
}

const OWN_NAMES: ReadonlySet<string> = new Set([...PLUGIN_NAMES, ...LAUNCHER_FILES, ...PLUGIN_LIBRARIES]);

function isLibrary(name: string): boolean {
  return PLUGIN_LIBRARIES.some((library) => library === name);
}

/** Removes a folder if it is empty: what is left in it was not ours, and has been reported. */
function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ENOENT' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

async function isOurs(name: string, record: InstallRecord, folders: ExecutableFolders): Promise<boolean> {
  const file = record.files.find((entry) => entry.name === name);
  if (file !== undefined && isAsRecorded(folders.cniBinDir, file)) return true;
  const isOwnName = OWN_NAMES.has(name);
  // No other program writes a file of this name.
  if (name === UNUSABLE_MARKER) return true;
  // Equal content of a reference plugin proves nothing, unless the record says that we were about to install it.
  if (!isOwnName && !record.intended.includes(name)) return false;
  const sources = isOwnName
    ? (isLibrary(name) ? [name] : OWN_SOURCES).map((one) => sourceOf(folders.pluginDir, one))
    : [sourceOf(folders.referencePluginDir, name)];
  for (const source of sources) {
    if (source !== undefined && (await isEqual(source, join(folders.cniBinDir, name)))) return true;
  }
  return false;
}

/** What the names of ours are copies of. */
const OWN_SOURCES = [PLUGIN_NAMES[0], LAUNCHER] as const;

function sourceOf(dir: string, name: string): string | undefined {
  return dir === '' ? undefined : join(dir, name);
}

async function isEqual(a: string, b: string): Promise<boolean> {
  const first = statSync(a, { throwIfNoEntry: false });
  const second = statSync(b, { throwIfNoEntry: false });
  if (first === undefined || second === undefined || first.size !== second.size) return false;
  return (await digest(a)) === (await digest(b));
}

type OtherConf = { readonly path: string; readonly text: string };

/**
 * Plugins of the CNI project, which call no other but the one that their `ipam` names. Any other plugin may: flannel
 * delegates to `bridge` and `host-local`, and its configuration names neither.
 */
const SELF_CONTAINED = new Set(
  (
    'bandwidth bridge dhcp dummy firewall host-device host-local ipvlan loopback macvlan portmap ptp sbr static tap ' +
    'tuning vlan vrf'
  ).split(' '),
);

/** Describes what else uses a reference plugin; undefined when nothing does. */
function findUser(name: string, others: readonly OtherConf[]): string | undefined {
  const uses = others.map(({ path, text }) => ({ path, types: typesIn(text) }));
  const named = uses.find(({ types }) => types.includes(name));
  if (named !== undefined) return `${named.path} names it`;
  const [first] = uses;
  if (name === 'loopback' && first !== undefined) return `the runtime itself calls it for the Pods of ${first.path}`;
  const opaque = uses.find(({ types }) => types.some((type) => !SELF_CONTAINED.has(type)));
  return opaque && `a plugin of ${opaque.path} may call it`;
}

function typesIn(text: string): readonly string[] {
  return [...text.matchAll(/"type"\s*:\s*"([^"]*)"/g)].flatMap(([, type]) => type ?? []);
}

/** Largest network configuration that is read, bytes: the largest that a runtime takes. */
const MAX_CONF_BYTES = 1024 * 1024;

/** Reads the network configurations of others, as far as they are readable. */
function readOtherConfs(confDir: string): readonly OtherConf[] {
  try {
    return readdirSync(confDir)
      .filter((name) => /\.(conf|conflist|json)$/.test(name) && name !== CONFLIST_FILE)
      .map((name) => join(confDir, name))
      .flatMap((path) => {
        try {
          return [{ path, text: readRegularText(path, MAX_CONF_BYTES) }];
        } catch {
          // A dangling link names nothing, nor does a FIFO.
          return [];
        }
      });
  } catch {
    return [];
  }
}

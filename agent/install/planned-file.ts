import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { COMPLETE_PROGRAM, LAUNCHER, UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';

/** Names of the one packaged executable; the first is its name in the plugin folder. */
export const PLUGIN_NAMES = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'] as const;

/** Files beside an installed launcher: the complete program, and the marker that it does not run on this host. */
export const LAUNCHER_FILES = [COMPLETE_PROGRAM, UNUSABLE_MARKER] as const;

/**
 * Libraries that our executables load from below their own folder, and that few nodes have: Node needs libatomic. Each
 * is installed if the plugin folder has it.
 */
export const PLUGIN_LIBRARIES = ['tke-eni-lib/libatomic.so.1'] as const;

/**
 * Reference plugins of the CNI project: our conflists chain them, hybrid nodes need them, or containerd calls them
 * itself.
 */
export const REFERENCE_PLUGIN_NAMES = ['portmap', 'bandwidth', 'host-local', 'bridge', 'loopback'] as const;

/** What a file is to contain: a copy of another, another name of one that is installed before it, a text, or nothing at all. */
type FileSource =
  | { readonly kind: 'copy'; readonly of: string }
  | { readonly kind: 'link'; readonly to: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none' };

/** A file that the agent keeps on the node. */
export type PlannedFile = {
  readonly path: string;
  readonly source: FileSource;
  /** Permission bits. */
  readonly mode: number;
  /** `ours`: no other program has a file of this name. `shared`: one that another program installed stays as it is. */
  readonly owner: 'ours' | 'shared';
  /** A shared one that is the very file that we installed. */
  readonly isRecorded?: boolean;
};

/** Reports whether a launcher is to be installed: `auto` where the folder of plugins has one. */
export function usesLauncher(pluginDir: string, choice: 'auto' | 'off'): boolean {
  return choice === 'auto' && existsSync(join(pluginDir, LAUNCHER));
}

/**
 * Plans our executables in `binDir`, in the order in which they are installed. Libraries go first, because the new executable
 * may need them. The other names are hard links: one copy on disk and in the page cache.
 *
 * With a launcher the names are links of the launcher, and the complete program, which it may become, is a file beside
 * it that is there first. Without one the complete program goes last: until then a launcher might become it.
 * @param unusable Why the complete program does not run on this host, for the launcher; undefined when it does.
 */
export function planExecutables(
  pluginDir: string,
  binDir: string,
  hasLauncher: boolean,
  unusable?: string,
): readonly PlannedFile[] {
  const own = (name: string, source: FileSource, mode = EXECUTABLE): PlannedFile => ({
    ...{ path: join(binDir, name), source, mode, owner: 'ours' },
  });
  const copy = (name: string, of = name): PlannedFile => own(name, { kind: 'copy', of: join(pluginDir, of) });
  const [main, ...aliases] = PLUGIN_NAMES;
  const marker: FileSource = unusable === undefined ? { kind: 'none' } : { kind: 'text', text: `${unusable}\n` };
  return [
    ...PLUGIN_LIBRARIES.filter((name) => existsSync(join(pluginDir, name))).map((name) => copy(name)),
    ...(hasLauncher ? [copy(COMPLETE_PROGRAM, main), copy(main, LAUNCHER)] : [copy(main)]),
    ...aliases.map((name) => own(name, { kind: 'link', to: join(binDir, main) })),
    ...(hasLauncher ? [] : [own(COMPLETE_PROGRAM, { kind: 'none' })]),
    own(UNUSABLE_MARKER, marker, TEXT),
  ];
}

/**
 * Plans the reference plugins that there are to install; a node that has one of another program keeps it.
 * @param isRecorded Reports whether the file of that name is the one that we installed.
 */
export function planReferencePlugins(
  referenceDir: string,
  binDir: string,
  isRecorded: (name: string) => boolean,
): readonly PlannedFile[] {
  if (referenceDir === '') return [];
  return REFERENCE_PLUGIN_NAMES.filter((name) => existsSync(join(referenceDir, name))).map((name) => ({
    ...{ path: join(binDir, name), source: { kind: 'copy', of: join(referenceDir, name) }, mode: EXECUTABLE },
    ...{ owner: 'shared', isRecorded: isRecorded(name) },
  }));
}

const EXECUTABLE = 0o755;
/** Permission bits of files that are read. */
export const TEXT = 0o644;

/**
 * Returns where an executable of the closed product is kept while ours has its place: no runtime looks for a plugin of this name.
 */
export function replacedPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.replaced`);
}

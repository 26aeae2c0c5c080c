import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { findLibraries } from '../../../tools/image/libraries.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** The root file system of a host that has only what it needs to run one kind of program. */
type HostRoot = {
  readonly path: string;
  /** Put before the agent's command line: it then sees the host's root there. */
  readonly wrapAgent: readonly string[];
  /** Makes a program that runs one of the host on the host, and returns its path; it keeps the name. */
  execOnHost(program: string): string;
  /** Adds a library that was left out. */
  addLibrary(name: string): void;
  close(): void;
};

/**
 * Makes a root file system of the libraries that `program` needs, but for some; the caller closes it. It shares with
 * this machine `/proc`, the named network namespaces, and `shared`, a folder at the same path.
 */
export function createHostRoot(program: string, without: readonly string[], shared: string): HostRoot {
  const dir = createTempDir('host-root');
  const root = dir.join('root');
  const libraries = findLibraries([program]);
  const put = ({ path, source }: { readonly path: string; readonly source: string }): void => {
    // As on the host itself, where programs name the loader.
    const target = join(root, path.replace('/usr/lib64/', '/lib64/'));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(source, target);
  };
  for (const library of libraries) if (!without.includes(basename(library.path))) put(library);
  for (const folder of ['proc', 'run/netns', shared]) mkdirSync(join(root, folder), { recursive: true });
  const mounts = [
    `mount --rbind /proc ${root}/proc`,
    `mount --rbind /run/netns ${root}/run/netns`,
    `mount --bind ${shared} ${root}${shared}`,
  ].join(' && ');
  // Namespaces that are named later must appear as well.
  const enter = ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c'];
  return {
    path: root,
    wrapAgent: [...enter, `${mounts} && exec "$@"`, 'sh'],
    execOnHost: (target) => {
      const script = dir.join(basename(target));
      const line = `exec ${enter.join(' ')} '${mounts} && exec chroot ${root} ${target}'`;
      writeFileSync(script, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
      return script;
    },
    addLibrary: (name) => {
      const library = libraries.find(({ path }) => basename(path) === name);
      if (library === undefined) throw new Error(`${program} does not need ${name}`);
      put(library);
    },
    close: () => {
      rmSync(root, { recursive: true, force: true });
      dir.close();
    },
  };
}

import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readElf } from './elf.ts';

/** A file of this system that programs need in order to run. */
type Library = {
  /** Absolute path in the image: real folders, the name that programs ask for. */
  readonly path: string;
  /** Regular file on this machine. */
  readonly source: string;
  readonly isLoader: boolean;
};

/**
 * Finds the libraries that programs load at start, those of the libraries included, and the loader. Reads the files and
 * runs none of them, as ldd would. What a program opens by name later, it must not need.
 * @param root of the system to look in.
 * @throws one error that names every library that is not there, and who needs it.
 */
export function findLibraries(programs: readonly string[], root = '/'): readonly Library[] {
  const found = new Map<string, Library>();
  const missing: string[] = [];
  const add = (library: Library): void => {
    if (found.has(library.path)) return;
    found.set(library.path, library);
    visit(library.source);
  };
  const visit = (file: string): void => {
    const elf = readElf(file);
    if (elf === undefined) return;
    const { interpreter, needed, machine } = elf;
    if (interpreter !== undefined) {
      const source = join(root, interpreter);
      if (existsSync(source)) add(locate(source, root, true));
      else missing.push(`${interpreter}, loader of ${file}`);
    }
    for (const name of needed) {
      // The loader, which glibc's libraries also name, is in memory before any of them, under the program's name for it.
      if (name.startsWith('ld-linux')) continue;
      const source = search(name, machine, root);
      if (source !== undefined) add(locate(source, root, false));
      else missing.push(`${name}, needed by ${file}`);
    }
  };
  for (const program of programs) visit(program);
  if (missing.length > 0) {
    throw new Error(`not in the library folders below ${root} (install their Debian packages):\n${missing.join('\n')}`);
  }
  return [...found.values()].toSorted(byPath);
}

/** Where Debian's loader looks without a cache, and other distributions' loaders. @see ld.so(8) */
const MULTIARCH: Readonly<Record<number, string>> = { 62: 'x86_64-linux-gnu', 183: 'aarch64-linux-gnu' };

function search(name: string, machine: number, root: string): string | undefined {
  const triplet = MULTIARCH[machine];
  const folders = triplet === undefined ? [] : [`lib/${triplet}`, `usr/lib/${triplet}`];
  return [...folders, 'lib64', 'usr/lib64', 'lib', 'usr/lib']
    .map((folder) => join(root, folder, name))
    .find((path) => existsSync(path) && readElf(path)?.machine === machine);
}

/** `/lib64/ld.so` -> `/usr/lib64/ld.so`: in the image as on today's systems, /lib and /lib64 are links into /usr. */
function locate(source: string, root: string, isLoader: boolean): Library {
  const folder = realpathSync(dirname(source)).slice(realpathSync(root).replace(/\/$/, '').length);
  const path = join(folder.replace(/^\/lib/, '/usr/lib'), basename(source));
  return { path, source: realpathSync(source), isLoader };
}

function byPath(a: Library, b: Library): number {
  return a.path < b.path ? -1 : 1;
}

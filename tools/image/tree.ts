import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { chmod, copyFile, link, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TarEntry } from '../../runtime/tar.ts';
import type { Layer } from './archive.ts';

/**
 * Puts each layer in order: by path, hard links after the files that they name, the folders around each entry added. What
 * a layer below has already is left out.
 * @throws when two layers, or one, say different things about a path.
 */
export function orderLayers(layers: readonly Layer[]): readonly Layer[] {
  const below = new Map<string, TarEntry>();
  return layers.map(({ name, entries }) => {
    const own = new Map<string, TarEntry>();
    for (const entry of entries) {
      const known = own.get(entry.path) ?? below.get(entry.path);
      if (known === undefined) own.set(entry.path, entry);
      else if (!isSame(known, entry)) throw new Error(`layer ${name}: ${entry.path} is given twice, and differently`);
    }
    for (const path of entries.flatMap(({ path }) => ancestors(path))) {
      if (!own.has(path) && !below.has(path)) own.set(path, { kind: 'folder', path });
    }
    for (const [path, entry] of own) below.set(path, entry);
    const sorted = [...own.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
    return { name, entries: [...sorted.filter(isNoLink), ...sorted.filter((entry) => !isNoLink(entry))] };
  });
}

/** Lays the files of an image into an empty folder, as a container would see them; owned by who runs this. */
export async function writeTree(root: string, layers: readonly Layer[]): Promise<void> {
  await mkdir(root, { recursive: true });
  for (const entry of layers.flatMap(({ entries }) => entries)) {
    const path = join(root, entry.path);
    switch (entry.kind) {
      case 'folder':
        await mkdir(path, { recursive: true });
        // mkdir(2) takes the umask off.
        await chmod(path, entry.mode ?? 0o755);
        break;
      case 'file':
        await writeFile(path, entry.content);
        await chmod(path, entry.mode ?? 0o644);
        break;
      case 'copy':
        await copyFile(entry.source, path);
        await chmod(path, entry.mode ?? 0o644);
        break;
      case 'symlink':
        await symlink(entry.target, path);
        break;
      case 'link':
        await link(join(root, entry.target), path);
        break;
      case 'archive':
        throw new Error(`${entry.path}: an archive has no place in an image's tree`);
    }
  }
}

/** Says all that decides about the bytes of layers; of big files, size and time stand for the content. */
export function fingerprintOf(layers: readonly Layer[]): unknown {
  return layers.map(({ name, entries }) => [
    name,
    entries.map((entry) => {
      if (entry.kind !== 'copy') return entry;
      const { size, mtimeMs, ino } = statSync(entry.source);
      if (size > READ_BYTES) return { ...entry, size, mtimeMs, ino };
      return { ...entry, sha256: createHash('sha256').update(readFileSync(entry.source)).digest('hex') };
    }),
  ]);
}

/** Executables of ours are bigger, and their build replaces them only when they change. */
const READ_BYTES = 16e6;

function isNoLink(entry: TarEntry): boolean {
  return entry.kind !== 'link';
}

function isSame(a: TarEntry, b: TarEntry): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function ancestors(path: string): readonly string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [...ancestors(folder), folder];
}

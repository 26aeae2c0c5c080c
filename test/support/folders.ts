import { existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes a folder and its parents; returns those that were not there, outermost first. */
export function makeFolders(path: string): readonly string[] {
  if (existsSync(path)) return [];
  const made = makeFolders(dirname(path));
  mkdirSync(path);
  return [...made, path];
}

/** Removes a folder unless something is in it or it is gone already. */
export function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody put something there meanwhile, or another node made it first: not ours to remove.
  }
}

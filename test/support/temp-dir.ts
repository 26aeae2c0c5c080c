import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of one test, gone after `close`. */
export type TempDir = { readonly path: string; join(...names: readonly string[]): string; close(): void };

/** Makes an empty folder under the system's temporary folder; the caller owns it. Its path is short enough for a unix socket. */
export function createTempDir(name = 'test'): TempDir {
  const path = mkdtempSync(join(tmpdir(), `tke-${name}-`));
  return {
    path,
    join: (...names) => join(path, ...names),
    close: () => rmSync(path, { recursive: true, force: true }),
  };
}

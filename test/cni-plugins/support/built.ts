import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..', '..');

/**
 * Brings an executable up to date and returns the folder that it lies in. A process of its own, for packaging changes
 * its working directory, which a worker of the test runner may not.
 */
export async function buildExecutable(name: string): Promise<string> {
  await promisify(execFile)(process.execPath, ['tools/build.ts', name], { cwd: ROOT });
  return join(ROOT, 'dist', 'bin');
}

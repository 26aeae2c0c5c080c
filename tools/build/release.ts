import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Says which release a bundle is: `0.1.0+abc1234`, the commit being the last that touched one of `sources`, so that a
 * commit elsewhere changes no executable; `.dirty` when one of them is not committed; the version alone without git.
 */
export async function describeRelease(root: string, sources: readonly string[]): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  const version = isManifest ? String(manifest.version) : '0.0.0';
  try {
    const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.trim();
    const commit = await git('log', '-1', '--format=%h', '--', ...sources);
    if (commit === '') return version;
    const changes = await git('status', '--porcelain', '--untracked-files=all', '--', ...sources);
    return `${version}+${commit}${changes === '' ? '' : '.dirty'}`;
  } catch {
    // No git, or a source archive without its history: the version still says enough.
    return version;
  }
}

const run = promisify(execFile);

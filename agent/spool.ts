import { type FSWatcher, readdirSync, readFileSync, renameSync, rmSync, watch } from 'node:fs';
import { join } from 'node:path';
import { decodeOrThrow, integer, optional, record, required, text } from '../runtime/decode.ts';
import { ensureFolder } from '../runtime/folder.ts';
import type { Logger } from '../runtime/log.ts';

/** A DEL that an executable could not deliver. */
export type SpooledDel = {
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  readonly writtenAtMs: number;
};

/** What draining needs. `release` resolves only when the DEL is done; a rejection keeps the file for the next time. */
export type SpoolDeps = {
  readonly directory: string;
  readonly release: (del: SpooledDel) => Promise<void>;
  readonly pending: (count: number) => void;
  readonly log: Logger;
};

const SUFFIX = '.json';
const REJECTED_SUFFIX = '.rejected';
/** Writers rename several files in a row when a node drains; one pass takes them all. */
const SETTLE_MS = 10;

const decodeSpooledDel = record(
  {
    containerId: required(text(/^.+$/, 'a container id')),
    ifName: required(text(/^.+$/, 'an interface name')),
    netns: optional(text()),
    network: optional(text()),
    plugin: optional((value) => value),
    podNamespace: optional(text()),
    podName: optional(text()),
    podUid: optional(text()),
    writtenAtMs: required(integer(0, Number.MAX_SAFE_INTEGER)),
  },
  'ignore',
);

/**
 * Does every spooled DEL once, in the order in which they were written; a file goes away only after its DEL is done, so
 * a crash in between repeats it, and a repeated DEL is success. Never throws. Returns how many are left.
 */
export async function drainSpool(deps: SpoolDeps): Promise<number> {
  ensureFolder(deps.directory, 0o700);
  const entries = readSpool(deps);
  let left = entries.length;
  deps.pending(left);
  for (const { path, del } of entries) {
    try {
      await deps.release(del);
      rmSync(path, { force: true });
      left--;
    } catch (error) {
      deps.log.warn('spooled DEL not done, kept for later', {
        containerId: del.containerId,
        ifName: del.ifName,
        error,
      });
    }
  }
  deps.pending(left);
  return left;
}

/** Drains whenever a file arrives, until closed. The caller's timer covers what inotify may miss (a replaced folder). */
export function watchSpool(deps: SpoolDeps): { close(): void; drain(): Promise<number> } {
  ensureFolder(deps.directory, 0o700);
  let running: Promise<number> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const drain = (): Promise<number> => {
    running ??= drainSpool(deps).finally(() => {
      running = undefined;
    });
    return running;
  };
  const watcher: FSWatcher = watch(deps.directory, (_event, name) => {
    if (name !== null && !name.endsWith(SUFFIX)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void drain(), SETTLE_MS);
  });
  watcher.on('error', (error) => deps.log.warn('spool folder not watched any more, the timer goes on', { error }));
  return {
    drain,
    close: () => {
      clearTimeout(timer);
      watcher.close();
    },
  };
}

function readSpool(deps: SpoolDeps): readonly { readonly path: string; readonly del: SpooledDel }[] {
  const names = readdirSync(deps.directory).filter((name) => name.endsWith(SUFFIX));
  const entries = names.flatMap((name) => {
    const path = join(deps.directory, name);
    try {
      const decoded = decodeOrThrow(decodeSpooledDel, JSON.parse(readFileSync(path, 'utf8')), path);
      return [{ path, del: { ...decoded, netns: decoded.netns ?? '' } }];
    } catch (error) {
      // A file that cannot be read now cannot be read later. Set aside for people; garbage collection finds the sandbox.
      deps.log.error('spooled DEL is not readable, set aside', { path: path + REJECTED_SUFFIX, error });
      setAside(path);
      return [];
    }
  });
  return entries.sort((a, b) => a.del.writtenAtMs - b.del.writtenAtMs);
}

function setAside(path: string): void {
  try {
    renameSync(path, path + REJECTED_SUFFIX);
  } catch {
    // Gone meanwhile: a second drain or a person was faster, and the wish is the same.
  }
}

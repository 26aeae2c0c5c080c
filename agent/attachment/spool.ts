import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runInBackground } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type ClockTimer, timerOn } from '../../runtime/clock-timers.ts';
import { decodeOrThrow, integer, optional, record, required, text } from '../../runtime/decode.ts';
import { reclaimFolder } from '../../runtime/folder.ts';
import type { Logger } from '../../runtime/log.ts';
import { FileError, readRegularText } from '../../runtime/read-regular-file.ts';
import { watchFolder } from '../../runtime/watch-folder.ts';

/** A DEL that an executable could not deliver to the agent. */
type SpooledDel = {
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  /** Milliseconds since boot; absent in files of older executables. */
  readonly writtenAtBootMs?: number;
};

/**
 * Dependencies of draining. `release` resolves only when the DEL is done; after a rejection the file stays for the next
 * time.
 */
type DrainDeps = {
  readonly directory: string;
  readonly release: (del: SpooledDel) => Promise<void>;
  readonly pending: (count: number) => void;
  readonly log: Logger;
};

/** Dependencies of draining whenever a file arrives. */
export type SpoolDeps = DrainDeps & { readonly clock: Pick<Clock, 'sleep'> };

/** What the spool of an agent has left, again and again. */
export type Spool = { drain(): Promise<void>; close(): void };

const SUFFIX = '.json';
const REJECTED_SUFFIX = '.rejected';
/** Pause after a notification: writers rename several files in a row when a node drains; one pass takes them all. */
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
    writtenAtMs: optional((value) => value),
    writtenAtBootMs: optional(integer(0, Number.MAX_SAFE_INTEGER)),
  },
  'ignore',
);

/**
 * Does every spooled DEL once, in the order in which they were written. A file is removed only after its DEL is done,
 * so a crash in between repeats it, and a repeated DEL is success. Returns how many are left.
 * @throws the error of the system when the folder cannot be listed: no descriptor is left
 */
export async function drainSpool(deps: DrainDeps): Promise<number> {
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

/**
 * Drains now and whenever a file arrives, until closed. The caller's timer covers what a watch may miss. `drain` never rejects: a
 * folder that cannot be made or listed now is tried again by the timer.
 */
export function watchSpool(deps: SpoolDeps): Spool {
  let running: Promise<void> | undefined;
  let timer: ClockTimer | undefined;
  const run = async (): Promise<void> => {
    try {
      const movedTo = reclaimFolder(deps.directory, 0o700);
      if (movedTo !== undefined)
        deps.log.error('the place of the spool folder was taken: moved aside', { path: deps.directory, movedTo });
      // Before the folder is listed: what arrives in between is found twice rather than late.
      folder.renew();
      await drainSpool(deps);
    } catch (error) {
      deps.log.warn('spool folder cannot be listed now, the timer tries again', { path: deps.directory, error });
    }
  };
  const drain = (): Promise<void> => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
  const folder = watchFolder(deps.directory, (name) => {
    if (name !== null && !name.endsWith(SUFFIX)) return;
    timer?.cancel();
    timer = timerOn(deps.clock, () => runInBackground('draining the spool', drain()), SETTLE_MS);
  });
  runInBackground('draining the spool', drain());
  return {
    drain,
    close: () => {
      timer?.cancel();
      folder.close();
    },
  };
}

type SpoolFile = { readonly path: string; readonly del: SpooledDel };

function readSpool(deps: DrainDeps): readonly SpoolFile[] {
  const entries = readdirSync(deps.directory, { withFileTypes: true }).filter(({ name }) => name.endsWith(SUFFIX));
  const files = entries.flatMap((entry) => {
    const path = join(deps.directory, entry.name);
    return readSpoolFile(deps, path, entry.isFile()) ?? [];
  });
  return files.sort((a, b) => (a.del.writtenAtBootMs ?? 0) - (b.del.writtenAtBootMs ?? 0));
}

/** Longest spooled DEL, bytes; an executable writes some hundred. */
const MAX_BYTES = 65_536;

/** @param isFile False for what no executable writes: a folder, a link. */
function readSpoolFile(deps: DrainDeps, path: string, isFile: boolean): SpoolFile | undefined {
  let content: string;
  try {
    content = isFile ? readRegularText(path, MAX_BYTES) : '';
  } catch (error) {
    if (error instanceof FileError) {
      refuse(deps, path, error);
      return undefined;
    }
    // Its executable removed it meanwhile, or no descriptor is left: what still exists the next time is read then.
    deps.log.warn('spooled DEL cannot be read now, left for later', { path, error });
    return undefined;
  }
  try {
    const decoded = decodeOrThrow(decodeSpooledDel, JSON.parse(content), path);
    return { path, del: { ...decoded, netns: decoded.netns ?? '' } };
  } catch (error) {
    refuse(deps, path, error);
    return undefined;
  }
}

/** It stays malformed. It is set aside for people; garbage collection finds the sandbox. */
function refuse(deps: DrainDeps, path: string, error: unknown): void {
  deps.log.error('spooled DEL is malformed, set aside', { path: path + REJECTED_SUFFIX, error });
  setAside(path);
}

function setAside(path: string): void {
  try {
    renameSync(path, path + REJECTED_SUFFIX);
  } catch {
    // It does not exist any more: a second drain or a person was faster, with the same aim.
  }
}

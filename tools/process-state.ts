import childProcess from 'node:child_process';
import fs, { readlinkSync } from 'node:fs';
import net from 'node:net';

/** Objects whose functions a test may have replaced. */
const OWNERS: Readonly<Record<string, object>> = {
  globalThis,
  process,
  console,
  Date,
  Math,
  performance,
  AbortSignal,
  fs,
  'fs.promises': fs.promises,
  net,
  childProcess,
};

/** What a test file may leave changed, by name. */
export type ProcessState = ReadonlyMap<string, unknown>;

/**
 * Reads what a test file may leave changed. Listeners of `exit` are not part of it: they may stay until then.
 * @param ignored Events whose listeners are not part of it either
 */
export function readProcessState(ignored: readonly string[] = []): ProcessState {
  const state = new Map<string, unknown>([
    ['working directory', process.cwd()],
    ['environment', JSON.stringify(process.env)],
    ['exit code', String(process.exitCode ?? 0)],
    ['network namespace', readlinkSync('/proc/self/ns/net')],
    ['mount namespace', readlinkSync('/proc/self/ns/mnt')],
  ]);
  for (const name of process.eventNames()) {
    if (ignored.some((one) => one === name) || name === 'exit' || name === 'beforeExit') continue;
    state.set(`listeners of ${String(name)}`, process.listenerCount(name));
  }
  for (const [name, owner] of Object.entries(OWNERS)) {
    for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      // Helpers of compiled TypeScript, which some packages define once.
      if (owner === globalThis && key.startsWith('__')) continue;
      // Much that is no function changes by itself, and Node defines some functions when they are first asked for.
      state.set(`${name}.${key}`, typeof value === 'function' ? value : undefined);
    }
  }
  return state;
}

/** Names what differs. */
export function changesBetween(before: ProcessState, after: ProcessState): readonly string[] {
  const added = [...after.keys()].filter(
    (name) => !before.has(name) || (before.get(name) ?? after.get(name)) !== after.get(name),
  );
  return [...added, ...[...before.keys()].filter((name) => !after.has(name))];
}

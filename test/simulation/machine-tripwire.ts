import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import http2 from 'node:http2';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(import.meta.url);

/** Modules of Node by which a process reaches its machine; every function of theirs. */
const MODULES: Readonly<Record<string, object>> = { fs, 'fs.promises': fs.promises, net, childProcess, dgram, http2 };
/** Real time, by its object and name. */
const TIME: readonly (readonly [object, string])[] = [
  ...(['setTimeout', 'setInterval', 'setImmediate'] as const).map((name) => [globalThis, name] as const),
  ...([
    [Date, 'now'],
    [performance, 'now'],
    [process.hrtime, 'bigint'],
    [AbortSignal, 'timeout'],
  ] as const),
];

/**
 * From now on, for as long as the process lives, notes every call by which a file of this project reaches the machine of this
 * process: files, sockets, child processes, real time. Returns the calls so far, each with the line that made it; files of
 * tests may. A call of the kernel by ffi is not alone: what is written to a socket, and each namespace, goes through `fs`.
 */
export function watchMachine(): () => readonly string[] {
  const seen = new Set<string>();
  for (const [module, its] of Object.entries(MODULES)) {
    for (const name of Object.keys(its)) {
      const real: unknown = Reflect.get(its, name);
      if (typeof real === 'function' && /^(?!is[A-Z])[a-z]/.test(name)) watch(its, name, `${module}.${name}`, seen);
    }
  }
  for (const [object, name] of TIME) watch(object, name, name, seen);
  syncBuiltinESMExports();
  return () => [...seen];
}

function watch(owner: object, name: string, shown: string, seen: Set<string>): void {
  const real = Reflect.get(owner, name) as (...values: unknown[]) => unknown;
  const apply = (target: typeof real, self: unknown, values: unknown[]): unknown => {
    const caller = callerOf(new Error(name).stack ?? '');
    if (caller !== undefined) seen.add(`${shown} ${caller}`);
    return Reflect.apply(target, self, values);
  };
  Reflect.set(owner, name, new Proxy(real, { apply }));
}

/** Returns the line of this project that called; undefined where a test did, or nothing of it. */
function callerOf(stack: string): string | undefined {
  const lines = stack.split('\n').slice(1);
  const line = lines.find((one) => one.includes(ROOT) && !one.includes('node_modules') && !one.includes(HERE));
  return line === undefined || line.includes(`${ROOT}test/`) ? undefined : line.trim().replace(ROOT, '');
}

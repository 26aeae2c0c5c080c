import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(import.meta.url);
let isArmed = false;

/**
 * From now on, for as long as the process lives, whatever of this project reads real time, starts a real timer or draws real
 * chance gets an error: a run that depends on any of them is not repeated by its seed. `AbortSignal.any` no longer keeps worlds in memory.
 * Idempotent.
 */
export function armTripwire(): void {
  if (isArmed) return;
  isArmed = true;
  for (const name of ['setTimeout', 'setInterval', 'setImmediate'] as const) guard(globalThis, name);
  guard(Math, 'random');
  guard(Date, 'now');
  guard(performance, 'now');
  guard(process, 'hrtime');
  guard(process, 'nextTick');
  guard(AbortSignal, 'timeout');
  AbortSignal.any = joinSignals;
  for (const name of Object.keys(crypto)) if (/^random|^getRandom/.test(name)) guard(crypto, name);
  syncBuiltinESMExports();
  globalThis.Date = new Proxy(Date, {
    construct: (date, values, target) => {
      if (values.length === 0) refuse('new Date()');
      return Reflect.construct(date, values, target);
    },
  });
}

/** Node keeps a joined signal that is listened to until it aborts, with all that listens: those of a life that was killed never do. */
function joinSignals(signals: Iterable<AbortSignal>): AbortSignal {
  const joined = new AbortController();
  const sources = [...signals];
  const over = sources.find(({ aborted }) => aborted);
  if (over !== undefined) joined.abort(over.reason);
  else for (const one of sources) one.addEventListener('abort', () => joined.abort(one.reason), { once: true });
  return joined.signal;
}

function guard(owner: object, name: string): void {
  const real: unknown = Reflect.get(owner, name);
  if (typeof real !== 'function') throw new Error(`there is no ${name}`);
  const apply = (target: typeof real, self: unknown, values: unknown[]): unknown => {
    refuse(name);
    return Reflect.apply(target, self, values);
  };
  Reflect.set(owner, name, new Proxy(real, { apply }));
}

/** @throws Error when a file of this project asks for it, itself or through a package */
function refuse(name: string): void {
  const callers = (new Error(name).stack ?? '')
    .split('\n')
    .slice(1)
    .filter((line) => !line.includes(HERE));
  // The test runner has timers of its own, wherever it was loaded from, and counts what a file costs.
  if (callers.some((line) => /\/ava\/lib\//.test(line) || line.includes(`${ROOT}tools/`))) return;
  const mine = callers.find((line) => line.includes(ROOT) && !line.includes('node_modules'));
  if (mine !== undefined) throw new Error(`${name} in a simulation: ${mine.trim()}`);
}

import { execFileSync } from 'node:child_process';
import test from 'ava';
import { EXECUTABLES } from '../../../tools/build.ts';

for (const [name, { execArgv }] of Object.entries(EXECUTABLES)) {
  test(`EXECUTABLES: V8 takes the code cache of ${name}, which was made without the flags that it runs with`, (t) => {
    t.is(cacheTag(execArgv), cacheTag([]));
  });
}

/** What a code cache and the V8 that reads it have to agree on. */
function cacheTag(flags: readonly string[]): string {
  const print = "process.stdout.write(String(require('node:v8').cachedDataVersionTag()))";
  return execFileSync(process.execPath, [...flags, '-e', print], { encoding: 'utf8' });
}

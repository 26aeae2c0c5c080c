/**
 * Writes V8's code cache of scripts: `node tools/build/make-code-cache.ts SCRIPT CACHE [SCRIPT CACHE]…`. A process of its own,
 * for a cache fits the flags of the Node that makes it, and test workers have others.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { Script } from 'node:vm';

const paths = process.argv.slice(2);
for (let at = 0; at + 1 < paths.length; at += 2) {
  const [script = '', cache = ''] = paths.slice(at, at + 2);
  writeFileSync(cache, new Script(readFileSync(script, 'latin1'), { filename: script }).createCachedData());
}

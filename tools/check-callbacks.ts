/**
 * Checks that no timer and no event handler of the product is an async function: nothing owns the promise that it returns, and
 * an error in it has no name. `runInBackground` owns one. The linter finds promises that are statements, and not these.
 * Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';

const INSTEAD = 'write () => runInBackground(what, work()), of runtime/background.ts';
const TIMER =
  /\b(?:(?:startTimer|startInterval|setImmediate|queueMicrotask|nextTick)\(|(?:timerOn|intervalOn)\([^,()]+,)\s*async\b/g;
const HANDLER =
  /\.(?:on|once|addListener|prependListener|prependOnceListener|addEventListener)\(\s*[^,()]+,\s*async\b/g;
/** An arrow function of a timer whose value is a call of a function that this file declares as async. */
const CALL =
  /\b(?:(?:startTimer|startInterval|setImmediate|queueMicrotask)\(|(?:timerOn|intervalOn)\([^,()]+,)\s*\(\)\s*=>\s*(?:this\.)?(#?\w+)\(/g;

/** Lists the callbacks of a source file that return a promise without an owner, as `line: found; write …`. Pure. */
export function findAsyncCallbacks(text: string): readonly string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '));
  const isAsync = (name: string): boolean =>
    new RegExp(`\\basync (?:function )?${name}\\(|\\b(?:const|let) ${name} = async\\b`).test(code);
  const calls = [...code.matchAll(CALL)].filter(([, name = '']) => isAsync(name));
  return [...code.matchAll(TIMER), ...code.matchAll(HANDLER), ...calls]
    .sort((a, b) => a.index - b.index)
    .map(({ 0: found, index }) => {
      const line = code.slice(0, index).split('\n').length;
      return `${line}: ${found.replaceAll(/\s+/g, ' ')}; ${INSTEAD}`;
    });
}

if (import.meta.main) {
  const paths = globSync('*/**/*.ts', {
    exclude: ['node_modules/**', 'dist/**', 'test/**', 'sim/**', 'bench/**', 'tools/**', 'examples/**'],
  }).sort();
  const violations = paths.flatMap((path) =>
    findAsyncCallbacks(readFileSync(path, 'utf8')).map((found) => `${path}:${found}`),
  );
  for (const violation of violations) console.error(violation);
  console.error(`callbacks: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}

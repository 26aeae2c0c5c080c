/**
 * What test files and what they share import as `ava` where a process runs several of them: whatever is registered goes to
 * AVA's runner of the file that runs.
 */
import { fileURLToPath } from 'node:url';
import type { TestFn } from 'ava';

let current: TestFn | undefined;

/** Has tests registered with this runner from now on. */
export function registerWith(test: TestFn): void {
  current = test;
}

function running(): TestFn {
  if (current === undefined) throw new Error('no test file is loaded');
  return current;
}

function chainOf(path: readonly PropertyKey[]): object {
  return new Proxy(() => undefined, {
    get: (_, key) => (key === 'meta' ? running().meta : chainOf([...path, key])),
    apply: (_, self, values) => {
      requireCaller();
      const chain = path.reduce<object>((part, key) => Reflect.get(part, key), running());
      return Reflect.apply(chain as () => unknown, self, values);
    },
  });
}

/** A module that registers tests when it is loaded does so for the first file alone: the others would lack them, unseen. */
function requireCaller(): void {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  const { stack = '' } = new Error(
    'tests are registered by a function that the test file calls, not by what it imports',
  );
  Error.stackTraceLimit = limit;
  // Both are URLs; a frame of a module that was compiled elsewhere may have a path.
  const { file } = running().meta;
  if (!stack.includes(file) && !stack.includes(fileURLToPath(file))) throw new Error(stack);
}

const test = chainOf([]) as TestFn;
export default test;

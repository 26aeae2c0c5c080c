import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import test from 'ava';

const ROOT = join(import.meta.dirname, '../../..');
/** An import that is run at start: not one of types, not `import()`. */
const IMPORT = /^(?:import|export)\s+(?!type\s)(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm;

/** Everything that is loaded before a command is known: files by their path, packages and Node's modules by name. */
function loadedBy(entry: string): ReadonlySet<string> {
  const loaded = new Set<string>();
  const visit = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const [, target = ''] of readFileSync(join(ROOT, path), 'utf8').matchAll(IMPORT)) {
      if (target.startsWith('.')) visit(relative(ROOT, join(ROOT, dirname(path), target)));
      else loaded.add(target);
    }
  };
  visit(entry);
  return loaded;
}

test('tke-eni: loads nothing at its start that only some commands need', (t) => {
  const loaded = [...loadedBy('cli/main.ts')];
  t.true(loaded.includes('cli/program/read-command-line.ts') && loaded.includes('cli/commands/commands.ts'));
  const outside = loaded.filter((name) => !name.startsWith('cli/'));
  // Each of these is in Node's own start already, or costs less than a tenth of a millisecond.
  const wanted = [
    'node:fs',
    'node:path',
    'runtime/byte-text.ts',
    'runtime/clock.ts',
    'runtime/edit-distance.ts',
    'runtime/on-abort.ts',
    'runtime/plain-text.ts',
    'runtime/user-error.ts',
    'yargs/helpers',
  ];
  t.deepEqual(outside.sort(), wanted);
  const inside = loaded.filter((name) => name.startsWith('cli/') && !name.startsWith('cli/program/'));
  t.deepEqual(
    inside.filter((name) => /\/(run|read|open|find|render)-[a-z-]+\.ts$/.test(name) && !name.startsWith('cli/output/')),
    [],
    'declarations import no code of commands',
  );
});

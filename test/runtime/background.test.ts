import { join } from 'node:path';
import test from 'ava';
import { backgroundOf } from '../../runtime/background.ts';
import { Child } from '../../sim/support/child.ts';

const MODULE = join(import.meta.dirname, '..', '..', 'runtime', 'background.ts');

function run(work: string): Child {
  const script = `
    import { runInBackground } from ${JSON.stringify(MODULE)};
    const timer = setTimeout(() => { process.stdout.write('went on'); }, 300);
    runInBackground('counting', (async () => { ${work} })());`;
  return new Child([process.execPath, '--input-type=module', '--eval', script]);
}

test('runInBackground: an error that the work does not handle ends the process, and names the work', async (t) => {
  const child = run(`await null; throw new Error('no descriptor is left');`);
  t.not((await child.exited).code, 0);
  t.is(child.stdout, '');
  t.regex(child.stderr, /BackgroundError: counting ended by an error/);
  t.regex(child.stderr, /no descriptor is left/);
});

test('runInBackground: work that ends by itself ends nothing else', async (t) => {
  const child = run('await null;');
  t.deepEqual(await child.exited, { code: 0, signal: null });
  t.is(child.stdout, 'went on');
});

test('backgroundOf: such an error ends the program whose work it was, and no other', async (t) => {
  const [first, second]: [string[], string[]] = [[], []];
  const noteIn = (ends: string[]) => backgroundOf((error) => void ends.push(`${error.message}: ${error.cause}`));
  const [ofFirst, ofSecond] = [noteIn(first), noteIn(second)];
  ofFirst('counting', Promise.reject(new Error('no descriptor is left')));
  ofSecond('counting', Promise.resolve());
  await new Promise((resolve) => setImmediate(resolve));
  t.is(first.length, 1);
  t.regex(first[0] ?? '', /^counting ended by an error.*no descriptor is left$/);
  t.deepEqual(second, []);
});

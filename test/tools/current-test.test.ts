import test, { type TestFn } from 'ava';

/** Loads what test files import where processes are shared, apart from that of this process. */
async function load(file: string): Promise<{ registered: readonly string[]; shared: TestFn }> {
  const url = new URL(`../../tools/current-test.ts?of=${encodeURIComponent(file)}`, import.meta.url).href;
  const { registerWith, default: shared }: typeof import('../../tools/current-test.ts') = await import(url);
  const registered: string[] = [];
  const serial = (title: string): unknown => registered.push(title);
  registerWith(Object.assign(() => undefined, { serial, meta: { file } }) as unknown as TestFn);
  return { registered, shared };
}

test('a test goes to the runner of the file that runs', async (t) => {
  const { registered, shared } = await load(import.meta.url);
  shared.serial('one', (inner) => inner.pass());
  t.deepEqual(registered, ['one']);
});

test('a module that registers tests when it is loaded is refused: the next file would lack them', async (t) => {
  const { registered, shared } = await load('file:///another.test.ts');
  t.throws(() => shared.serial('one', (inner) => inner.pass()), { message: /by a function that the test file calls/ });
  t.deepEqual(registered, []);
});

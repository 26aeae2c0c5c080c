import test from 'ava';
import { runTogether } from '../../runtime/run-together.ts';

const FAULT = new Error('a fault');

/** Work that ends with its signal, and what may end it. */
function sceneOf() {
  const halt = new AbortController();
  const logged: unknown[] = [];
  const log = {
    error: (_text: string, fields?: Readonly<Record<string, unknown>>) => void logged.push(fields?.['error']),
  };
  const work = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  return { work, logged, end: { halt, signal: new AbortController().signal, log } };
}

const failures: Readonly<Record<string, () => Promise<never>>> = {
  rejects: () => Promise.reject(FAULT),
  'throws at once': () => {
    throw FAULT;
  },
};

for (const [how, failing] of Object.entries(failures)) {
  test(`runTogether: the first that ${how} ends the others, and is thrown when all have ended`, async (t) => {
    const { work, logged, end } = sceneOf();
    const ended: string[] = [];
    const slow = (signal: AbortSignal) =>
      work(signal).catch(async () => {
        await Promise.resolve();
        ended.push('slow');
      });
    await t.throwsAsync(runTogether([work, slow, failing, () => Promise.resolve()], end), { is: FAULT });
    t.deepEqual(ended, ['slow']);
    t.deepEqual(logged, []);
    t.is(end.halt.signal.reason, FAULT);
  });
}

test('runTogether: one inside another has ended when the outer one throws', async (t) => {
  const { work, logged, end } = sceneOf();
  const { signal, log } = end;
  const ended: string[] = [];
  const slow = (by: AbortSignal) => work(by).catch(() => Promise.resolve().then(() => void ended.push('slow')));
  const inner = (by: AbortSignal) => runTogether([slow, () => Promise.reject(FAULT)], { signal: by, log });
  await t.throwsAsync(runTogether([inner, slow], { signal, log }), { is: FAULT });
  t.deepEqual(ended, ['slow', 'slow']);
  t.deepEqual(logged, []);
});

test('runTogether: after the abort only the abort itself goes unsaid', async (t) => {
  const { work, logged, end } = sceneOf();
  const failing = (signal: AbortSignal) =>
    work(signal).catch(() => {
      throw FAULT;
    });
  const aborted = (signal: AbortSignal) =>
    work(signal).catch(() => {
      throw new DOMException('aborted', 'AbortError');
    });
  const all = runTogether([work, failing, aborted], end);
  end.halt.abort(new Error('the term is over'));
  await t.notThrowsAsync(all);
  t.deepEqual(logged, [FAULT]);
});

import test from 'ava';
import { endTogether } from '../../runtime/end-together.ts';

/** Work that ends with the signal, and what may end it. */
function sceneOf() {
  const halt = new AbortController();
  const { signal } = halt;
  const logged: unknown[] = [];
  const log = {
    error: (_text: string, fields?: Readonly<Record<string, unknown>>) => void logged.push(fields?.['error']),
  };
  const work = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return { work, logged, end: { halt, signal, log } };
}

test('endTogether: the first that fails ends the others, and is thrown when all have ended', async (t) => {
  const { work, logged, end } = sceneOf();
  const fault = new Error('a fault');
  const ended: string[] = [];
  const slow = work.catch(async () => {
    await Promise.resolve();
    ended.push('slow');
  });
  await t.throwsAsync(endTogether([work, slow, Promise.reject(fault), Promise.resolve()], end), { is: fault });
  t.deepEqual(ended, ['slow']);
  t.deepEqual(logged, []);
});

test('endTogether: after the abort only the abort itself goes unsaid', async (t) => {
  const { work, logged, end } = sceneOf();
  const fault = new Error('a fault');
  const failing = work.catch(() => {
    throw fault;
  });
  const aborted = work.catch(() => {
    throw new DOMException('aborted', 'AbortError');
  });
  const all = endTogether([work, failing, aborted], end);
  end.halt.abort(new Error('the term is over'));
  await t.notThrowsAsync(all);
  t.deepEqual(logged, [fault]);
});

import test from 'ava';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';

test('run: keeps the order of arrival within a key', async (t) => {
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const seen: number[] = [];
  const first = mutex.run('pod', async () => {
    await gate.promise;
    seen.push(1);
  });
  const second = mutex.run('pod', () => {
    seen.push(2);
  });
  const third = mutex.run('pod', () => {
    seen.push(3);
  });
  gate.resolve();
  await Promise.all([first, second, third]);
  t.deepEqual(seen, [1, 2, 3]);
});

test('run: does not make other keys wait', async (t) => {
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const held = mutex.run('a', () => gate.promise);
  t.is(await mutex.run('b', () => 'b ran while a was held'), 'b ran while a was held');
  gate.resolve();
  await held;
});

test('run: goes on after work that failed, and forgets idle keys', async (t) => {
  const mutex = new KeyedMutex();
  const failing = mutex.run('pod', () => Promise.reject(new Error('no')));
  const after = mutex.run('pod', () => 7);
  await t.throwsAsync(failing, { message: 'no' });
  t.is(await after, 7);
  t.is(mutex.size, 0);
});

test('run: lanes take turns at a key, and each is served in order of arrival', async (t) => {
  const mutex = new KeyedMutex();
  const seen: string[] = [];
  const all = ['a1', 'a2', 'a3', 'b1', 'b2'].map((name) => mutex.run('pool', () => seen.push(name), name.slice(0, 1)));
  await Promise.all(all);
  t.deepEqual(seen, ['a1', 'a2', 'b1', 'a3', 'b2']);
});

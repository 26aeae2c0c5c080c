import test from 'ava';
import fc from 'fast-check';
import { ApiError } from '../../sim/kube-api/api-error.ts';
import { type KubeObject, without } from '../../sim/kube-api/object.ts';
import { keyOf, Store } from '../../sim/kube-api/store.ts';
import { assertLaw } from '../support/law.ts';

function object(name: string, value: number): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'n' }, value };
}

const step = fc.record({ name: fc.constantFrom('a', 'b', 'c'), value: fc.option(fc.integer(), { nil: undefined }) });

function act(store: Store, { name, value }: { readonly name: string; readonly value: number | undefined }): void {
  const present = store.get('/x', `n/${name}`);
  if (value !== undefined) store.put('/x', object(name, value));
  else if (present !== undefined) store.remove('/x', present);
}

test('Store: lists each earlier state as it was', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const store = new Store();
      const states = steps.map((one) => {
        act(store, one);
        return { revision: store.revision, names: JSON.stringify(store.list('/x')) };
      });
      return states.every(({ revision, names }) => JSON.stringify(store.listAt('/x', undefined, revision)) === names);
    }),
  );
});

test('Store: an old list and the changes since give the present', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(step, { maxLength: 20 }), fc.nat(), (steps, cut) => {
      const store = new Store();
      const at = steps.length === 0 ? 0 : cut % steps.length;
      for (const one of steps.slice(0, at)) act(store, one);
      const { revision } = store;
      const mirror = new Map(store.list('/x').map((one) => [keyOf(one), one]));
      for (const one of steps.slice(at)) act(store, one);
      for (const event of store.since('/x', revision)) {
        if (event.type === 'DELETED') mirror.delete(keyOf(event.object));
        else mirror.set(keyOf(event.object), event.object);
      }
      const sorted = [...mirror].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
      return JSON.stringify(sorted) === JSON.stringify(store.list('/x'));
    }),
  );
});

test('Store: forgets what was compacted, and what exceeds its memory', (t) => {
  const store = new Store(10);
  for (let value = 0; value < 30; value++) store.put('/x', object('a', value));
  t.is(t.throws(() => store.since('/x', 2), { instanceOf: ApiError })?.reason, 'Expired');
  const { revision } = store;
  t.is(store.since('/x', revision - 5).length, 5);
  store.compact();
  t.throws(() => store.since('/x', revision - 5), { instanceOf: ApiError });
  t.deepEqual(store.since('/x', revision), []);
});

test('Store: goes back to a snapshot, revision and all', (t) => {
  const store = new Store();
  store.put('/x', object('a', 1));
  const before = store.snapshot();
  store.put('/x', object('a', 2));
  store.put('/x', object('b', 3));
  store.restore(before);
  t.is(store.revision, before.revision);
  t.deepEqual(
    store.list('/x').map((one) => without(one, 'metadata')['value']),
    [1],
  );
});

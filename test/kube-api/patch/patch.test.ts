import test from 'ava';
import fc from 'fast-check';
import { isEqual } from '../../../sim/kube-api/object.ts';
import { applyJsonPatch, PatchError } from '../../../sim/kube-api/patch/json-patch.ts';
import { builtInMergeKeys } from '../../../sim/kube-api/patch/merge-keys.ts';
import { applyMergePatch } from '../../../sim/kube-api/patch/merge-patch.ts';
import { applyStrategicMerge } from '../../../sim/kube-api/patch/strategic-merge.ts';
import { assertLaw } from '../../support/law.ts';

const jsonPatch = test.macro((t, document: unknown, patch: unknown, want: unknown) =>
  t.deepEqual(applyJsonPatch(document, patch), want),
);

// The examples of RFC 6902, appendix A.
test('applyJsonPatch: adds a field', jsonPatch, { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], {
  foo: 'bar',
  baz: 'qux',
});
test('applyJsonPatch: removes a field', jsonPatch, { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], {
  foo: 'bar',
});
test('applyJsonPatch: removes an item', jsonPatch, { foo: ['bar', 'qux', 'baz'] }, [{ op: 'remove', path: '/foo/1' }], {
  foo: ['bar', 'baz'],
});
test('applyJsonPatch: replaces', jsonPatch, { baz: 'qux' }, [{ op: 'replace', path: '/baz', value: 'boo' }], {
  baz: 'boo',
});
test(
  'applyJsonPatch: moves an item',
  jsonPatch,
  { foo: ['all', 'grass', 'cows', 'eat'] },
  [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
  { foo: ['all', 'cows', 'eat', 'grass'] },
);
test('applyJsonPatch: adds at the end', jsonPatch, { foo: ['bar'] }, [{ op: 'add', path: '/foo/-', value: ['abc'] }], {
  foo: ['bar', ['abc']],
});
test('applyJsonPatch: reads ~0 and ~1', jsonPatch, { '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: 10 }], {
  '/': 9,
  '~1': 10,
});
test('applyJsonPatch: copies', jsonPatch, { a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }], { a: [1], b: [1] });

const refuses = test.macro((t, document: unknown, patch: unknown, code: PatchError['code']) => {
  t.is(t.throws(() => applyJsonPatch(document, patch), { instanceOf: PatchError })?.code, code);
});

test(
  'applyJsonPatch: refuses to add where nothing is',
  refuses,
  { foo: 'bar' },
  [{ op: 'add', path: '/baz/bat', value: 1 }],
  'DOES_NOT_APPLY',
);
test('applyJsonPatch: refuses an unknown operation', refuses, {}, [{ op: 'spin', path: '/a' }], 'MALFORMED');
test('applyJsonPatch: refuses what is no list', refuses, {}, { op: 'add' }, 'UNREADABLE');

// The table of RFC 7386, appendix A.
const MERGES: readonly (readonly [unknown, unknown, unknown])[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];
for (const [document, patch, want] of MERGES) {
  test(`applyMergePatch: ${JSON.stringify(document)} with ${JSON.stringify(patch)}`, (t) =>
    t.deepEqual(applyMergePatch(document, patch), want));
}

test('applyMergePatch: done twice is done once', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.jsonValue(), fc.jsonValue(), (document, patch) => {
      const once = applyMergePatch(document, patch);
      return isEqual(applyMergePatch(once, patch), once);
    }),
  );
});

const POD = {
  spec: {
    containers: [
      { name: 'a', image: 'i:1', env: [{ name: 'X', value: '1' }] },
      { name: 'b', image: 'i:1' },
    ],
    tolerations: [{ key: 'k' }],
  },
  metadata: { finalizers: ['one'] },
};

function merged(patch: unknown) {
  return applyStrategicMerge(POD, patch, builtInMergeKeys) as typeof POD;
}

test('applyStrategicMerge: merges items by their key, also within items', (t) => {
  const { spec } = merged({ spec: { containers: [{ name: 'a', env: [{ name: 'Y', value: '2' }] }] } });
  t.deepEqual(spec.containers, [
    {
      name: 'a',
      image: 'i:1',
      env: [
        { name: 'X', value: '1' },
        { name: 'Y', value: '2' },
      ],
    },
    { name: 'b', image: 'i:1' },
  ]);
});

test('applyStrategicMerge: replaces lists that have no key', (t) => {
  t.deepEqual(merged({ spec: { tolerations: [{ key: 'l' }] } }).spec.tolerations, [{ key: 'l' }]);
});

test('applyStrategicMerge: obeys its directives', (t) => {
  t.deepEqual(merged({ spec: { containers: [{ $patch: 'delete', name: 'a' }] } }).spec.containers, [
    { name: 'b', image: 'i:1' },
  ]);
  t.deepEqual(merged({ spec: { containers: [{ $patch: 'replace' }, { name: 'c' }] } }).spec.containers as unknown, [
    { name: 'c' },
  ]);
  t.deepEqual(merged({ metadata: { '$deleteFromPrimitiveList/finalizers': ['one'] } }).metadata, { finalizers: [] });
  t.deepEqual(merged({ metadata: { finalizers: ['two'] } }).metadata, { finalizers: ['one', 'two'] });
  const order = { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] };
  t.deepEqual(
    merged({ spec: order }).spec.containers.map((one) => one.name),
    ['b', 'a'],
  );
});

test('applyStrategicMerge: refuses an item without its key', (t) => {
  t.throws(() => merged({ spec: { containers: [{ image: 'x' }] } }), { instanceOf: PatchError });
});

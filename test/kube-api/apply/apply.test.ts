import test from 'ava';
import fc from 'fast-check';
import { fromTree, leavesOf, pathOf, removePath, toTree } from '../../../sim/kube-api/apply/field-set.ts';
import { applyConfiguration } from '../../../sim/kube-api/apply/server-side-apply.ts';
import { isEqual, type KubeObject } from '../../../sim/kube-api/object.ts';
import { builtInMergeKeys } from '../../../sim/kube-api/patch/merge-keys.ts';
import { assertLaw } from '../../support/law.ts';

const POD = {
  spec: {
    nodeName: 'n',
    containers: [{ name: 'a', image: 'i', ports: [{ containerPort: 1 }] }, { name: 'b' }],
    args: ['x'],
  },
  metadata: { name: 'p', finalizers: ['f'], labels: { l: '1' } },
};

test('leavesOf: names fields, items by their keys, members of sets', (t) => {
  t.deepEqual(
    [...leavesOf(POD, builtInMergeKeys).keys()].map((path) => pathOf(path).join(' ')),
    [
      'f:spec f:nodeName',
      'f:spec f:containers k:{"name":"a"}',
      'f:spec f:containers k:{"name":"a"} f:name',
      'f:spec f:containers k:{"name":"a"} f:image',
      'f:spec f:containers k:{"name":"a"} f:ports k:{"containerPort":1}',
      'f:spec f:containers k:{"name":"a"} f:ports k:{"containerPort":1} f:containerPort',
      'f:spec f:containers k:{"name":"b"}',
      'f:spec f:containers k:{"name":"b"} f:name',
      'f:spec f:args',
      'f:metadata f:finalizers v:"f"',
      'f:metadata f:labels f:l',
    ],
  );
});

test('toTree: is read back by fromTree', (t) => {
  const paths = [...leavesOf(POD, builtInMergeKeys).keys()];
  t.deepEqual([...fromTree(toTree(paths))].sort(), [...paths].sort());
});

test('removePath: takes a field or an item, and nothing that is not there', (t) => {
  t.deepEqual(removePath({ a: { b: 1, c: 2 } }, ['f:a', 'f:b']), { a: { c: 2 } });
  t.deepEqual(removePath({ l: [{ n: 'a' }, { n: 'b' }] }, ['f:l', 'k:{"n":"a"}']), { l: [{ n: 'b' }] });
  t.deepEqual(removePath({ s: ['x', 'y'] }, ['f:s', 'v:"x"']), { s: ['y'] });
  t.deepEqual(removePath({ a: 1 }, ['f:b', 'f:c']), { a: 1 });
});

function map(data: Readonly<Record<string, string>>): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data };
}

function apply(live: KubeObject, manager: string, data: Readonly<Record<string, string>>): KubeObject {
  const writer = { manager, operation: 'Apply' as const, apiVersion: 'v1', subresource: '', time: 't' };
  return applyConfiguration(live, map(data), { writer, force: true, mergeKeys: builtInMergeKeys });
}

const data = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'));
const EMPTY: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' } };

test('applyConfiguration: with force, the last to apply gets what it says, and again changes nothing', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.array(fc.tuple(fc.constantFrom('one', 'two'), data), { minLength: 1, maxLength: 6 }), (steps) => {
      const live = steps.reduce((object, [manager, wanted]) => apply(object, manager, wanted), EMPTY);
      const [manager, wanted] = steps.at(-1) ?? ['', {}];
      const has = Object.entries(wanted).every(
        ([key, value]) => (live['data'] as Record<string, string>)[key] === value,
      );
      return has && isEqual(apply(live, manager, wanted), live);
    }),
  );
});

test('applyConfiguration: what one manager alone said goes with it', async (t) => {
  await assertLaw(t, () =>
    fc.property(data, data, (mine, theirs) => {
      const live = apply(apply(EMPTY, 'one', mine), 'two', theirs);
      const after = apply(live, 'one', {});
      return isEqual(after['data'] ?? {}, theirs);
    }),
  );
});

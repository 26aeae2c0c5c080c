import test from 'ava';
import fc from 'fast-check';
import { type StaticIpRule, selectStaticIpConfig } from '../../crd/select-static-ip-config.ts';
import { assertLaw } from '../support/law.ts';

const OURS = 'kube-system';
const POD = { namespace: 'shop', labels: { app: 'db', tier: 'gold' } };

function rule(
  namespace: string,
  name: string,
  podLabels?: Readonly<Record<string, string>>,
  namespaces?: readonly string[],
): StaticIpRule {
  const spec = { ...(podLabels && { podLabels }), ...(namespaces && { namespaces }) };
  return { metadata: { namespace, name }, spec };
}

const DB = { app: 'db' };
const CASES: readonly (readonly [string, StaticIpRule, boolean])[] = [
  ['a rule of its own namespace', rule('shop', 'a', DB), true],
  ['a rule of another namespace', rule('yard', 'a', DB), false],
  ['a label that it has not', rule('shop', 'a', { app: 'db', tier: 'tin' }), false],
  ['a label that every object has by birth', rule('shop', 'a', { constructor: 'Object' }), false],
  ['no labels', rule('shop', 'a'), false],
  ['empty labels', rule('shop', 'a', {}), false],
  ['a cluster rule for every namespace', rule(OURS, 'a', DB, ['*']), true],
  ['a cluster rule that names its namespace', rule(OURS, 'a', DB, ['yard', 'shop']), true],
  ['a cluster rule for another namespace', rule(OURS, 'a', DB, ['yard']), false],
  ['a rule of the cluster namespace for its own', rule(OURS, 'a', DB), false],
  ["another namespace's claim to rule the cluster", rule('yard', 'a', DB, ['*']), false],
  ['a rule of its own namespace that names another', rule('shop', 'a', DB, ['yard']), true],
  ['nothing at all', { metadata: { namespace: 'shop', name: 'a' } }, false],
];
for (const [what, one, isSelected] of CASES) {
  test(`selectStaticIpConfig: ${isSelected ? 'takes' : 'passes over'} ${what}`, (t) => {
    t.is(selectStaticIpConfig([one], POD, OURS), isSelected ? one : undefined);
  });
}

test('selectStaticIpConfig: answers the same whatever the order of the rules', async (t) => {
  const order = [rule('shop', 'a', DB), rule('shop', 'b', DB), rule(OURS, 'A', DB, ['*']), rule(OURS, 'a', DB, ['*'])];
  await assertLaw(t, (t) =>
    fc.property(fc.shuffledSubarray(order, { minLength: 1 }), (some) => {
      t.is(
        selectStaticIpConfig(some, POD, OURS),
        order.find((one) => some.includes(one)),
      );
    }),
  );
});

import test from 'ava';
import fc from 'fast-check';
import type { NodeEniConfigSpec } from '../../../crd/node-eni-config-fields.ts';
import {
  type AppliedPolicy,
  decidePolicy,
  isPolicyInForce,
  isStaticNode,
  type PolicyFacts,
  readApplied,
  readDesiredPodNum,
  renderApplied,
} from '../../../ipamd/nodes/decide-policy.ts';
import { assertLaw } from '../../support/law.ts';

const FACTS: PolicyFacts = {
  limits: { secondaryEnis: 3, secondaryIpsPerEni: 9 },
  settings: {},
  desiredPodNum: undefined,
  spec: {},
  applied: {},
};
const policy = test.macro(
  (t, change: Partial<PolicyFacts>, want: readonly (number | undefined)[], applied: AppliedPolicy) => {
    const decided = decidePolicy({ ...FACTS, ...change });
    const { maxRouteENI, maxIPPerENI, desiredRouteENIPodNum } = decided.fields;
    t.deepEqual([maxRouteENI, maxIPPerENI, desiredRouteENIPodNum], want);
    t.deepEqual(decided.applied, applied);
  },
);
const OURS = { maxRouteENI: 3, maxIPPerENI: 9 };

test('decidePolicy: writes the limits of the instance', policy, {}, [3, 9, undefined], OURS);
test(
  'decidePolicy: widens them again when an annotation goes',
  policy,
  { spec: { maxRouteENI: 2 }, applied: { maxRouteENI: 2 } },
  [3, 9, undefined],
  OURS,
);
test("decidePolicy: bounds a person's value by the instance", policy, { spec: { maxRouteENI: 9 } }, [3, 9, undefined], {
  maxIPPerENI: 9,
});
test('decidePolicy: copies the wish of the Node', policy, { desiredPodNum: 12 }, [3, 9, 12], {
  ...OURS,
  desiredRouteENIPodNum: 12,
});
test(
  'decidePolicy: drops the wish with the annotation',
  policy,
  { spec: { desiredRouteENIPodNum: 12 }, applied: { desiredRouteENIPodNum: 12 } },
  [3, 9, undefined],
  OURS,
);
test(
  "decidePolicy: leaves a person's wish",
  policy,
  { spec: { desiredRouteENIPodNum: 7 }, desiredPodNum: 12 },
  [3, 9, 7],
  OURS,
);
test(
  'decidePolicy: remembers the warm target that it told of',
  policy,
  { settings: { routeWarm: { min: 2, max: 8 } } },
  [3, 9, undefined],
  { ...OURS, routeWarm: '2/8' },
);

const small = fc.option(fc.nat(12), { nil: undefined });
const fields = fc.record({ maxRouteENI: small, maxIPPerENI: small, desiredRouteENIPodNum: small });

/** Drops what is undefined, as JSON does. */
function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return JSON.parse(JSON.stringify(value));
}

test('decidePolicy: has nothing to do once it is in force, whoever wrote what before', async (t) => {
  await assertLaw(t, () =>
    fc.property(fields, fields, small, small, fc.nat(9), (spec, applied, desiredPodNum, routeMaxAttach, enis) => {
      const settings = defined({ routeMaxAttach });
      const facts = { limits: { secondaryEnis: enis, secondaryIpsPerEni: 9 }, settings, desiredPodNum };
      const first = decidePolicy({ ...facts, spec: defined(spec), applied: defined(applied) });
      const written: NodeEniConfigSpec = defined(first.fields);
      const again = decidePolicy({ ...facts, spec: written, applied: readBack(first.applied) });
      return isPolicyInForce(written, readBack(first.applied), again) && (written.maxRouteENI ?? 0) <= enis;
    }),
  );
});

function readBack(applied: AppliedPolicy): AppliedPolicy {
  return readApplied({ 'tke.cloud.tencent.com/applied-policy': renderApplied(applied) });
}

test('readApplied: takes what it cannot read for nothing', (t) => {
  for (const text of [undefined, '', '[]', '{"maxRouteENI":"3"}', 7])
    t.deepEqual(readApplied({ 'tke.cloud.tencent.com/applied-policy': text }), {});
});

const NAME = 'tke.cloud.tencent.com/desired-route-eni-pod-num';
const podNum = test.macro((t, text: string, value: number | undefined, isValid: boolean) =>
  t.deepEqual(readDesiredPodNum({ [NAME]: text }), { value, isValid }),
);
test('readDesiredPodNum: reads a number', podNum, '27', 27, true);
test('readDesiredPodNum: refuses a negative one', podNum, '-1', undefined, false);
test('readDesiredPodNum: refuses words', podNum, 'many', undefined, false);
test('readDesiredPodNum: refuses more than any node holds', podNum, '999999', undefined, false);
test('readDesiredPodNum: needs none', (t) => t.deepEqual(readDesiredPodNum({}), { value: undefined, isValid: true }));

for (const { title, exclusive, settings = {}, spec = {}, applied = {}, wanted } of [
  { title: 'leaves it absent where the node serves none', exclusive: { isServed: false, limit: 3 }, wanted: undefined },
  { title: 'takes what the instance may have', exclusive: { isServed: true, limit: 3 }, wanted: 3 },
  {
    title: 'takes less by annotation',
    exclusive: { isServed: true, limit: 3 },
    settings: { directMaxAttach: 1 },
    wanted: 1,
  },
  {
    title: 'takes back what it wrote when the node serves none any more',
    exclusive: { isServed: false, limit: 3 },
    spec: { maxDirectENI: 3 },
    applied: { maxDirectENI: 3 },
    wanted: undefined,
  },
]) {
  test(`decidePolicy: of exclusive ENIs ${title}`, (t) => {
    const limits = { secondaryEnis: 3, secondaryIpsPerEni: 9 };
    const policy = decidePolicy({ limits, exclusive, settings, desiredPodNum: undefined, spec, applied });
    t.is(policy.fields.maxDirectENI, wanted);
    t.deepEqual(readApplied({ 'tke.cloud.tencent.com/applied-policy': renderApplied(policy.applied) }), policy.applied);
  });
}

test('decidePolicy: turns kept addresses on, off again, and leaves what a person wrote', (t) => {
  const on = decidePolicy({ ...FACTS, isStatic: true });
  t.like(on, { fields: { enableStaticIP: true }, applied: { enableStaticIP: true } });
  t.deepEqual(readApplied({ 'tke.cloud.tencent.com/applied-policy': renderApplied(on.applied) }), on.applied);
  const spec = { ...OURS, enableStaticIP: true };
  t.true(isPolicyInForce(spec, on.applied, on));
  const off = decidePolicy({ ...FACTS, isStatic: false, spec, applied: on.applied });
  t.is(off.fields.enableStaticIP, undefined);
  t.false(isPolicyInForce(spec, on.applied, off));
  t.is(decidePolicy({ ...FACTS, isStatic: true, spec: { enableStaticIP: false } }).fields.enableStaticIP, false);
});

test('isStaticNode: the label goes before the flag, where it says true or false; auto asks for a Pod network', (t) => {
  const table = [undefined, 'true', 'false', 'perhaps'].map((staticIpLabel) => {
    const node = { podCidrs: [], ...(staticIpLabel === undefined ? {} : { staticIpLabel }) };
    const hybrid = { ...node, podCidrs: ['172.16.0.0/24'] };
    return [
      ...(['false', 'true', 'auto'] as const).map((flag) => isStaticNode(node, flag)),
      ...(['false', 'auto'] as const).map((flag) => isStaticNode(hybrid, flag)),
    ];
  });
  t.deepEqual(table, [
    [false, true, false, false, true],
    [true, true, true, true, true],
    [false, false, false, false, false],
    [false, true, false, false, true],
  ]);
});

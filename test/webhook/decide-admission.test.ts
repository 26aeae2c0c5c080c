import test from 'ava';
import fc from 'fast-check';
import { POD_ANNOTATION as NAME } from '../../crd/names.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';
import { applyJsonPatch } from '../../sim/kube-api/patch/json-patch.ts';
import { admittedPod } from '../../webhook/admitted-pod.ts';
import { type AdmissionContext, decideAdmission } from '../../webhook/decide-admission.ts';
import { assertLaw } from '../support/law.ts';

const ENI_IP = 'tke.cloud.tencent.com/eni-ip';
const DIRECT_ENI = 'tke.cloud.tencent.com/direct-eni';
const EIP = 'tke.cloud.tencent.com/eip';
const OURS = 'kube-system';
const SCENE: AdmissionContext = {
  namespace: 'shop',
  defaultNetwork: 'tke-route-eni',
  rules: [],
  clusterNamespace: OURS,
};
const HYBRID: AdmissionContext = { ...SCENE, defaultNetwork: 'tke-bridge' };

type Pod = {
  readonly metadata: { readonly [name: string]: unknown };
  readonly spec: { readonly [name: string]: unknown };
};

function podOf(annotations?: Readonly<Record<string, string>>, spec: Pod['spec'] = {}): Pod {
  const metadata = { name: 'db-0', labels: { app: 'db' }, ...(annotations && { annotations }) };
  return { metadata, spec: { containers: [{ name: 'db', image: 'db:1' }], ...spec } };
}

function admit(pod: Pod, scene = SCENE) {
  const faults = new Faults();
  const decoded = admittedPod(pod, '', faults);
  if (decoded === undefined) throw new Error(JSON.stringify(faults.list));
  const { patch, warnings } = decideAdmission(decoded, scene);
  return { patch, warnings, after: applyJsonPatch(pod, patch) };
}

const ONE = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, '1']));
const BOTH = (...names: readonly string[]) => ({ limits: ONE(...names), requests: ONE(...names) });

function firstResources(pod: unknown): unknown {
  const spec = isRecord(pod) && isRecord(pod['spec']) ? pod['spec'] : {};
  const containers: readonly unknown[] = Array.isArray(spec['containers']) ? spec['containers'] : [];
  return isRecord(containers[0]) ? containers[0]['resources'] : undefined;
}

const REQUESTS: readonly (readonly [string, Pod, AdmissionContext, unknown])[] = [
  ['a Pod without a word, by default', podOf(), SCENE, BOTH(ENI_IP)],
  ['a Pod with an empty word, by default', podOf({ [NAME.networks]: ' ' }), SCENE, BOTH(ENI_IP)],
  ['a Pod without a word in a hybrid cluster', podOf(), HYBRID, undefined],
  [
    'a Pod without a word where ENIs are exclusive',
    podOf(),
    { ...SCENE, defaultNetwork: 'tke-direct-eni' },
    BOTH(DIRECT_ENI),
  ],
  ['a Pod of a hybrid cluster that asks', podOf({ [NAME.networks]: 'tke-route-eni' }), HYBRID, BOTH(ENI_IP)],
  [
    'a Pod with a qualified network',
    podOf({ [NAME.networks]: 'kube-system/tke-direct-eni@eth0' }),
    HYBRID,
    BOTH(DIRECT_ENI),
  ],
  ['a Pod with a JSON network', podOf({ [NAME.networks]: '[{"name":"tke-route-eni"}]' }), HYBRID, BOTH(ENI_IP)],
  ['a Pod of the bridge', podOf({ [NAME.networks]: 'tke-bridge' }), SCENE, undefined],
  ["a Pod of somebody else's network", podOf({ [NAME.networks]: 'flannel' }), SCENE, undefined],
  ['a Pod that asks for both', podOf({ [NAME.networks]: 'tke-route-eni,tke-direct-eni' }), SCENE, undefined],
  ['a Pod of the host network', podOf({ [NAME.networks]: 'tke-route-eni' }, { hostNetwork: true }), SCENE, undefined],
  ["a static Pod's mirror", podOf({ 'kubernetes.io/config.mirror': 'a1b2' }), SCENE, undefined],
  ['a Pod that asks for an EIP', podOf({ [NAME.eipAttributes]: '' }), SCENE, BOTH(ENI_IP, EIP)],
  ['a Pod that lists EIPs', podOf({ [NAME.eipIdList]: 'eip-1a2b3c4d' }), SCENE, BOTH(ENI_IP, EIP)],
  ['a Pod whose EIP cannot be read', podOf({ [NAME.eipAttributes]: '{' }), SCENE, BOTH(ENI_IP)],
  ['a Pod whose EIP has nothing to be bound to', podOf({ [NAME.eipAttributes]: '' }), HYBRID, undefined],
];
for (const [what, pod, scene, resources] of REQUESTS) {
  test(`decideAdmission: requests ${resources === undefined ? 'nothing' : 'what is needed'} for ${what}`, (t) => {
    t.deepEqual(firstResources(admit(pod, scene).after), resources);
  });
}

const CPU = { cpu: '1', memory: '1Gi' };
const SHAPES: readonly (readonly [string, unknown, unknown])[] = [
  ['null', null, BOTH(ENI_IP)],
  ['empty', {}, BOTH(ENI_IP)],
  ['limits alone', { limits: CPU }, { limits: { ...CPU, ...ONE(ENI_IP) }, requests: ONE(ENI_IP) }],
  ['requests alone', { requests: CPU }, { limits: ONE(ENI_IP), requests: { ...CPU, ...ONE(ENI_IP) } }],
  ['limits of null', { limits: null, requests: CPU }, { limits: ONE(ENI_IP), requests: { ...CPU, ...ONE(ENI_IP) } }],
  [
    'both, and claims',
    { limits: CPU, requests: CPU, claims: [{ name: 'gpu' }] },
    { limits: { ...CPU, ...ONE(ENI_IP) }, requests: { ...CPU, ...ONE(ENI_IP) }, claims: [{ name: 'gpu' }] },
  ],
];
for (const [what, resources, after] of SHAPES) {
  test(`decideAdmission: adds to resources that are ${what}`, (t) => {
    t.deepEqual(firstResources(admit(podOf(undefined, { containers: [{ name: 'db', resources }] })).after), after);
  });
}

const HAS = (name: string) => ({ name: 'net', resources: { limits: { [name]: '1' } } });
const PRESENT: readonly (readonly [string, Pod['spec']])[] = [
  ['its first container', { containers: [HAS(ENI_IP)] }],
  ['its second container', { containers: [{ name: 'db' }, HAS(ENI_IP)] }],
  ['an init container', { containers: [{ name: 'db' }], initContainers: [HAS(ENI_IP)] }],
  ['its limits, as none', { containers: [{ name: 'db', resources: { limits: { [ENI_IP]: '0' } } }] }],
  ['its requests only', { containers: [{ name: 'db', resources: { requests: { [ENI_IP]: 1 } } }] }],
];
for (const [what, spec] of PRESENT) {
  test(`decideAdmission: requests no second address of a Pod that names it in ${what}`, (t) => {
    t.deepEqual(admit(podOf({ [NAME.networks]: 'tke-route-eni' }, spec)).patch, []);
  });
}

test('decideAdmission: leaves a Pod alone that requests another network than it names, and says so', (t) => {
  const pod = podOf({ [NAME.networks]: 'tke-direct-eni' }, { containers: [HAS(ENI_IP)] });
  const { patch, warnings } = admit(pod);
  t.deepEqual(patch, []);
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /tke\.cloud\.tencent\.com\/networks: expected .*direct-eni.*eni-ip$/);
});

const SLIPS: readonly (readonly [string, string])[] = [
  [NAME.networks, '[{'],
  [NAME.networks, ','],
  [NAME.networks, 'tke-route-enni'],
  [NAME.networks, 'tke-route-eni,tke-direct-eni'],
  [NAME.deletePolicy, 'never'],
  [NAME.claimExpiredDuration, '10s'],
  [NAME.nominatedVpcIp, '10.0.0.300'],
  [NAME.nominatedSubnets, 'net-1'],
  [NAME.securityGroups, 'group'],
  [NAME.eipAttributes, '{"InternetMaxBandwidthOut":0}'],
  [NAME.eipIdList, '203.0.113.7'],
];
for (const [name, value] of SLIPS) {
  test(`decideAdmission: names the annotation ${name}=${value} and what was expected`, (t) => {
    const { warnings } = admit(podOf({ [name]: value }));
    t.true(
      warnings.some((warning) => warning.startsWith(name) && warning.includes('expected')),
      warnings.join('\n'),
    );
  });
}

test('decideAdmission: requests nothing when the network cannot be read', (t) => {
  t.deepEqual(admit(podOf({ [NAME.networks]: '[{' })).patch, []);
});

const RULE = {
  metadata: { namespace: 'shop', name: 'db' },
  spec: { podLabels: { app: 'db' }, deletePolicy: 'Never' },
} as const;
const KEEPS: AdmissionContext = { ...SCENE, rules: [RULE] };
const KEPT: readonly (readonly [string, Pod, AdmissionContext, string | undefined])[] = [
  ['a Pod that a rule selects', podOf(), KEEPS, 'Never'],
  ['a Pod that a rule selects and that has annotations', podOf({ 'a/b': 'c' }), KEEPS, 'Never'],
  ['a Pod with a word of its own', podOf({ [NAME.deletePolicy]: 'Immediate' }), KEEPS, 'Immediate'],
  [
    'a Pod that names the resource itself',
    podOf(undefined, { containers: [HAS(ENI_IP)] }),
    { ...KEEPS, defaultNetwork: 'tke-bridge' },
    'Never',
  ],
  ['a Pod of another network', podOf({ [NAME.networks]: 'tke-bridge' }), KEEPS, undefined],
  ['a Pod of the host network', podOf(undefined, { hostNetwork: true }), KEEPS, undefined],
  ['a Pod of another namespace', podOf(), { ...KEEPS, namespace: 'yard' }, undefined],
];
for (const [what, pod, scene, policy] of KEPT) {
  test(`decideAdmission: ${policy === undefined ? 'keeps no address' : `says ${policy}`} for ${what}`, (t) => {
    const { after } = admit(pod, scene);
    const metadata = isRecord(after) && isRecord(after['metadata']) ? after['metadata'] : {};
    const annotations = isRecord(metadata['annotations']) ? metadata['annotations'] : {};
    t.is(annotations[NAME.deletePolicy], policy);
    for (const [name, value] of Object.entries(
      isRecord(pod.metadata['annotations']) ? pod.metadata['annotations'] : {},
    )) {
      t.is(annotations[name], value);
    }
  });
}

const quantities = fc.option(
  fc.dictionary(fc.constantFrom('cpu', 'memory', 'a~b/c', ENI_IP, DIRECT_ENI, EIP), fc.constantFrom('1', '0', '250m')),
  { nil: undefined, freq: 2 },
);
const container = fc.record(
  {
    name: fc.string(),
    resources: fc.option(fc.record({ limits: quantities, requests: quantities }, { requiredKeys: [] }), {
      nil: undefined,
    }),
  },
  { requiredKeys: ['name'] },
);
const annotations = fc.dictionary(
  fc.constantFrom(...Object.values(NAME), 'other/annotation'),
  fc.oneof(
    fc.constantFrom(
      'tke-route-eni',
      'tke-direct-eni',
      'tke-route-eni,tke-direct-eni',
      'tke-bridge',
      'Never',
      '',
      '{}',
      '[',
    ),
    fc.string(),
  ),
);
const anyPod = fc
  .record({
    metadata: fc.record({ labels: fc.constant({ app: 'db' }), annotations }, { requiredKeys: [] }),
    spec: fc.record(
      {
        hostNetwork: fc.boolean(),
        containers: fc.array(container, { maxLength: 3 }),
        initContainers: fc.array(container, { maxLength: 2 }),
      },
      { requiredKeys: ['containers'] },
    ),
  })
  // As it comes over the wire: without fields that are undefined.
  .map((pod): Pod => JSON.parse(JSON.stringify(pod)));
const anyScene = fc.record({
  namespace: fc.constantFrom('shop', 'yard'),
  defaultNetwork: fc.constantFrom('tke-route-eni' as const, 'tke-direct-eni' as const, 'tke-bridge' as const),
  rules: fc.constantFrom([], [RULE]),
  clusterNamespace: fc.constant(OURS),
});

test('decideAdmission: adds nothing the second time, whatever the Pod', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(anyPod, anyScene, (pod, scene) => {
        const { after } = admit(pod, scene);
        t.deepEqual(admit(after as Pod, scene).patch, []);
      }),
    { numRuns: 500 },
  );
});

test('decideAdmission: takes nothing away and changes nothing that is there, whatever the Pod', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(anyPod, anyScene, (pod, scene) => {
        t.deepEqual(missingFrom(admit(pod, scene).after, pod, ''), []);
      }),
    { numRuns: 500 },
  );
});

test('decideAdmission: requests one network at most, and each resource whole or not at all, whatever the Pod', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(anyPod, anyScene, (pod, scene) => {
        const { after } = admit(pod, scene);
        const [limits, requests] = ['limits', 'requests'].map((part) => addedTo(part, pod, after));
        t.deepEqual(limits, requests);
        t.true(Object.values(limits ?? {}).every((quantity) => quantity === '1'));
        t.true(Object.keys(limits ?? {}).filter((name) => name !== EIP).length <= 1);
      }),
    { numRuns: 500 },
  );
});

/** Returns which quantities of the first container are new. */
function addedTo(part: string, before: unknown, after: unknown): Readonly<Record<string, unknown>> {
  const [old, now] = [before, after].map((pod) => {
    const resources = firstResources(pod);
    const found = isRecord(resources) ? resources[part] : undefined;
    return isRecord(found) ? found : {};
  });
  return Object.fromEntries(Object.entries(now ?? {}).filter(([name]) => old?.[name] === undefined));
}

/** Lists what of `before` is not in `after` as it was. */
function missingFrom(after: unknown, before: unknown, path: string): readonly string[] {
  if (isRecord(before)) {
    if (!isRecord(after)) return before !== undefined ? [path] : [];
    return Object.entries(before).flatMap(([name, value]) => missingFrom(after[name], value, `${path}/${name}`));
  }
  if (Array.isArray(before)) {
    if (!Array.isArray(after) || after.length !== before.length) return [path];
    return before.flatMap((value: unknown, index) => missingFrom(after[index], value, `${path}/${index}`));
  }
  return Object.is(after, before) ? [] : [path];
}

test('decideAdmission: warns of an interface on a trunk ENI, which no node offers', (t) => {
  const resources = { limits: { 'tke.cloud.tencent.com/sub-eni': '1' } };
  const { warnings } = admit(podOf(undefined, { containers: [{ name: 'db', image: 'db:1', resources }] }));
  t.regex(warnings.join(), /sub-eni: expected .*eni-ip or .*direct-eni/);
});

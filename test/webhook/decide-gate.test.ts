import test from 'ava';
import fc from 'fast-check';
import { BACKEND_READY_GATE, DIRECT_ACCESS_ANNOTATION, POD_ANNOTATION } from '../../crd/names.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';
import { applyJsonPatch } from '../../sim/kube-api/patch/json-patch.ts';
import { backendPod } from '../../webhook/backend-pod.ts';
import { decideGate, type GateContext } from '../../webhook/decide-gate.ts';
import { readDirectIngress, readSelectingService } from '../../webhook/direct-access.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { assertLaw } from '../support/law.ts';

const WEB = { namespace: 'shop', selector: new Map([['app', 'web']]) };
const SCENE: GateContext = { services: [WEB], hasPreStopSleep: true };
const GATE = { conditionType: BACKEND_READY_GATE };
const OTHER = { conditionType: 'example.com/ready' };

type Pod = { readonly metadata: object; readonly spec: object };

function podOf(spec: object = {}, metadata: object = {}): Pod {
  return {
    metadata: { name: 'web-0', labels: { app: 'web', tier: 'a' }, ...metadata },
    spec: { containers: [{ name: 'web', image: 'web:1' }], ...spec },
  };
}

function sleeping(text: string, spec: object = {}): Pod {
  return podOf(spec, { labels: {}, annotations: { [POD_ANNOTATION.preStopSleep]: text } });
}

function admit(pod: unknown, scene = SCENE) {
  const faults = new Faults();
  const decoded = backendPod(pod, '', faults);
  if (decoded === undefined || faults.list.length > 0) throw new Error(JSON.stringify(faults.list));
  const { patch, warnings } = decideGate(decoded, scene);
  return { patch, warnings, after: applyJsonPatch(pod, patch) };
}

const GATES: readonly (readonly [string, Pod, GateContext['services'], unknown])[] = [
  ['a Pod that a Service selects', podOf(), [WEB], [GATE]],
  ['a Pod with a gate of somebody else', podOf({ readinessGates: [OTHER] }), [WEB], [OTHER, GATE]],
  ['a Pod whose gates are null', podOf({ readinessGates: null }), [WEB], [GATE]],
  ['a Pod with the gate', podOf({ readinessGates: [GATE, OTHER] }), [WEB], [GATE, OTHER]],
  ['a Pod that no Service selects', podOf(), [], undefined],
  ['a Pod without labels', podOf({}, { labels: undefined }), [WEB], undefined],
  [
    'a Pod with half of the labels',
    podOf(),
    [{ ...WEB, selector: new Map(Object.entries({ app: 'web', tier: 'b' })) }],
    undefined,
  ],
  [
    'a Pod asked for a label that all objects have',
    podOf(),
    [{ ...WEB, selector: new Map([['constructor', 'x']]) }],
    undefined,
  ],
  ['a Pod of the host network', podOf({ hostNetwork: true }), [WEB], undefined],
  ['a mirror Pod', podOf({}, { annotations: { 'kubernetes.io/config.mirror': 'a1' } }), [WEB], undefined],
];
for (const [what, pod, services, gates] of GATES) {
  test(`decideGate: gates of ${what}`, (t) => {
    t.deepEqual(at(admit(pod, { ...SCENE, services }).after, 'spec', 'readinessGates'), gates);
  });
}

const HOOK = (seconds: number) => ({ preStop: { sleep: { seconds } } });
const SLEEPS: readonly (readonly [string, Pod, readonly unknown[], unknown])[] = [
  ['the grace period that Kubernetes gives', sleeping('15s'), [HOOK(15)], 45],
  ['a grace period of its own', sleeping('1m30s', { terminationGracePeriodSeconds: 5 }), [HOOK(90)], 95],
  ['a grace period of null', sleeping('15s', { terminationGracePeriodSeconds: null }), [HOOK(15)], 45],
  [
    'hooks of null',
    sleeping('15s', { containers: [{ lifecycle: null }, { lifecycle: { preStop: null } }] }),
    [HOOK(15), HOOK(15)],
    45,
  ],
];
for (const [what, pod, hooks, grace] of SLEEPS) {
  test(`decideGate: sleep of a Pod with ${what}`, (t) => {
    const { after, warnings } = admit(pod);
    t.deepEqual(warnings, []);
    const containers = at(after, 'spec', 'containers');
    t.deepEqual(Array.isArray(containers) && containers.map((one) => isRecord(one) && one['lifecycle']), hooks);
    t.is(at(after, 'spec', 'terminationGracePeriodSeconds'), grace);
  });
}

for (const text of ['', 'soon', '15', '-1s', '0s', '500ms', '1500ms', '301s', '5m1s', '9'.repeat(40), '1e3s', '15 s']) {
  test(`decideGate: admits a Pod that asks for a sleep of "${text}" as it is, and warns`, (t) => {
    const { patch, warnings } = admit(sleeping(text));
    t.deepEqual(patch, []);
    t.is(warnings.length, 1);
    t.regex(
      warnings[0] ?? '',
      /pre-stop-sleep: expected whole seconds from 1s to 5m, such as 15s, got .*; no sleep is added/,
    );
  });
}

test('decideGate: adds no sleep that the API server does not know, and says why', (t) => {
  const { patch, warnings } = admit(sleeping('15s'), { ...SCENE, hasPreStopSleep: false });
  t.deepEqual(patch, []);
  t.regex(warnings.join(), /--pre-stop-sleep of the webhook is off: it needs Kubernetes 1\.30/);
});

const hook = fc.option(fc.constantFrom({ exec: {} }, { sleep: { seconds: 15 } }, { sleep: { seconds: 3 } }), {
  nil: null,
});
const lifecycle = fc.option(fc.record({ preStop: hook }, { requiredKeys: [] }), { nil: null });
const anyPod = fc.record({
  metadata: fc.record({
    labels: fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('web', 'a')),
    annotations: fc.dictionary(fc.constant(POD_ANNOTATION.preStopSleep), fc.constantFrom('15s', '4s', '1h', 'x')),
  }),
  spec: fc.record(
    {
      hostNetwork: fc.boolean(),
      readinessGates: fc.array(fc.constantFrom(GATE, OTHER), { maxLength: 2 }),
      terminationGracePeriodSeconds: fc.option(fc.nat(100), { nil: null }),
      containers: fc.array(fc.record({ lifecycle }, { requiredKeys: [] }), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['containers'] },
  ),
});

test('decideGate: adds nothing the second time, and warns the same, whatever the Pod', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(anyPod, (pod) => {
      const first = admit(pod);
      const second = admit(first.after);
      t.deepEqual(second.patch, []);
      t.deepEqual(second.warnings, first.warnings);
    }),
  );
});

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop', annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } },
  spec: { type: 'LoadBalancer', selector: { app: 'web' } },
};
const withSpec = (spec: object) => ({ ...SERVICE, spec: { ...SERVICE.spec, ...spec } });
const withMeta = (metadata: object) => ({ ...SERVICE, metadata: { ...SERVICE.metadata, ...metadata } });
const READ: readonly (readonly [string, typeof SERVICE & object, string, boolean])[] = [
  ['direct access', SERVICE, '', true],
  ['a class that is served', withSpec({ loadBalancerClass: 'a.com/clb' }), 'a.com/clb', true],
  ['a class of somebody else', withSpec({ loadBalancerClass: 'b.com/clb' }), 'a.com/clb', false],
  ['a class where none is served', withSpec({ loadBalancerClass: 'b.com/clb' }), '', false],
  ['another type', withSpec({ type: 'NodePort' }), '', false],
  ['no selector', withSpec({ selector: null }), '', false],
  ['an empty selector', withSpec({ selector: {} }), '', false],
  ['no annotation', withMeta({ annotations: undefined }), '', false],
  ['direct access refused', withMeta({ annotations: { [DIRECT_ACCESS_ANNOTATION]: 'false' } }), '', false],
  ['a time of deletion', withMeta({ deletionTimestamp: '2026-01-01T00:00:00Z' }), '', false],
];
for (const [what, object, served, isRead] of READ) {
  test(`readSelectingService: a Service with ${what} ${isRead ? 'has' : 'has no'} Pods as backends`, (t) => {
    const read = readSelectingService(object, served);
    t.is(read?.isDirect ?? false, isRead);
    if (isRead) t.like(read, WEB);
  });
}

const backend = (name: string) => ({ service: { name, port: { number: 80 } } });
const INGRESS = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: {
    name: 'site',
    namespace: 'shop',
    annotations: {
      'ingress.cloud.tencent.com/direct-access': 'true',
      'kubernetes.io/ingress.http-rules': '[{"backend":{"serviceName":"old","servicePort":80}}]',
      'kubernetes.io/ingress.https-rules': 'odd',
    },
  },
  spec: {
    defaultBackend: backend('rest'),
    rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend: backend('web') }] } }, { host: 'a.b' }],
  },
};

test('readDirectIngress: it leads to the Services of its spec and of its annotations', (t) => {
  t.deepEqual(readDirectIngress(INGRESS), { namespace: 'shop', services: new Set(['rest', 'web', 'old']) });
  const { metadata } = INGRESS;
  t.is(readDirectIngress({ ...INGRESS, metadata: { ...metadata, annotations: {} } }), undefined);
  t.is(readDirectIngress({ ...INGRESS, metadata: { ...metadata, deletionTimestamp: 'now' } }), undefined);
  const alone = { 'ingress.cloud.tencent.com/direct-access': 'true' };
  t.is(readDirectIngress({ ...INGRESS, metadata: { ...metadata, annotations: alone }, spec: { rules: 1 } }), undefined);
});

import test from 'ava';
import { readServiceHead, readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const service = (spec: unknown, metadata: object = {}, status?: unknown): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop', uid: 'u-1', resourceVersion: '7', ...metadata },
  spec,
  ...(status === undefined ? {} : { status }),
});

test('the head of a Service', (t) => {
  const finalizers = ['other/one', 'service.kubernetes.io/load-balancer-cleanup'];
  const ingress = [{ ip: '10.0.0.9', ipMode: 'VIP' }, { hostname: 'a.example' }, {}, 'nonsense'];
  const object = service(
    { type: 'LoadBalancer', loadBalancerClass: 'example.com/a' },
    { finalizers, deletionTimestamp: '2026-01-01T00:00:00Z', labels: { a: 'b' }, annotations: { c: 'd' } },
    { loadBalancer: { ingress } },
  );
  t.deepEqual(readServiceHead(object), {
    kind: 'service',
    key: 'shop/web',
    namespace: 'shop',
    name: 'web',
    uid: 'u-1',
    resourceVersion: '7',
    type: 'LoadBalancer',
    loadBalancerClass: 'example.com/a',
    isLeaving: true,
    hasFinalizer: true,
    labels: { a: 'b' },
    annotations: { c: 'd' },
    ingress: [{ ip: '10.0.0.9', ipMode: 'VIP' }, { hostname: 'a.example' }],
  });
});

test('the head of an object of any shape', (t) => {
  for (const spec of [undefined, null, 1, 'text', [], { type: 7, loadBalancerClass: {} }]) {
    for (const status of [undefined, null, [], { loadBalancer: 1 }, { loadBalancer: { ingress: {} } }]) {
      t.like(readServiceHead(service(spec, {}, status)), { type: 'ClusterIP', ingress: [], hasFinalizer: false });
    }
  }
});

test('the spec of a Service, with what the API server leaves out', (t) => {
  t.deepEqual(readServiceSpec(service({ ports: [{ port: 80 }] })), {
    ports: [{ name: '', protocol: 'TCP', port: 80 }],
    externalTrafficPolicy: 'Cluster',
    allocatesNodePorts: true,
    ipFamilies: ['IPv4'],
    sourceRanges: [],
  });
  const spec = {
    ports: [
      { name: 't', port: 53, nodePort: 30_053, protocol: 'TCP', targetPort: 'dns' },
      { name: 'u', port: 53, nodePort: 30_054, protocol: 'UDP' },
    ],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 31_000,
    allocateLoadBalancerNodePorts: false,
    ipFamilies: ['IPv6', 'IPv4'],
    loadBalancerIP: '10.0.0.9',
    loadBalancerSourceRanges: ['10.0.0.0/8'],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
  };
  t.deepEqual(readServiceSpec(service(spec)), {
    ports: [
      { name: 't', protocol: 'TCP', port: 53, nodePort: 30_053 },
      { name: 'u', protocol: 'UDP', port: 53, nodePort: 30_054 },
    ],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 31_000,
    allocatesNodePorts: false,
    ipFamilies: ['IPv6', 'IPv4'],
    loadBalancerIp: '10.0.0.9',
    sourceRanges: ['10.0.0.0/8'],
    affinitySeconds: 60,
  });
  t.is(readServiceSpec(service({ ports: [], sessionAffinity: 'ClientIP' })).affinitySeconds, 10_800);
});

const BAD: readonly (readonly [title: string, spec: unknown, place: RegExp])[] = [
  ['no spec', undefined, /the whole: expected an object, got nothing/],
  ['no ports', {}, /ports: expected a value, got nothing/],
  ['a port of 0', { ports: [{ port: 0 }] }, /ports\[0\]\.port: expected a whole number from 1 to 65535, got 0/],
  [
    'another protocol',
    { ports: [{ port: 1, protocol: 'ICMP' }] },
    /ports\[0\]\.protocol: expected one of .*, got "ICMP"/,
  ],
  ['a port twice', { ports: [{ port: 1 }, { port: 1 }] }, /ports: expected each protocol and port once, got "TCP 1"/],
  [
    'many ports',
    { ports: Array.from({ length: 1_001 }, (_, at) => ({ port: at + 1 })) },
    /at most 1000 entries, got 1001/,
  ],
  ['another policy', { ports: [], externalTrafficPolicy: 'Near' }, /externalTrafficPolicy: expected one of/],
  ['a family', { ports: [], ipFamilies: ['IPv5'] }, /ipFamilies\[0\]: expected one of/],
];

for (const [title, spec, place] of BAD) {
  test(`a bad spec is one error that names the place: ${title}`, (t) => {
    const error = t.throws(() => readServiceSpec(service(spec)), { code: 'CONFIG', message: place });
    t.true(error?.message.startsWith('spec of the Service shop/web: '), error?.message);
  });
}

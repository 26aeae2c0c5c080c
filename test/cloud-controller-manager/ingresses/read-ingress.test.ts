import test from 'ava';
import { readIngressHead, readIngressSpec } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { INGRESS_FINALIZER } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const ingress = (spec: unknown, metadata: object = {}, status?: unknown): KubeObject => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web', namespace: 'shop', uid: 'u-1', resourceVersion: '7', ...metadata },
  spec,
  ...(status === undefined ? {} : { status }),
});
const backend = (name: string, port: object) => ({ service: { name, port } });

test('the head of an Ingress', (t) => {
  const metadata = {
    finalizers: ['other/one', INGRESS_FINALIZER],
    annotations: { a: 'b' },
    creationTimestamp: '2026-01-01T00:00:01Z',
  };
  const status = { loadBalancer: { ingress: [{ ip: '10.0.0.9' }, { hostname: 'a.example' }, {}, 'nonsense'] } };
  t.deepEqual(readIngressHead(ingress({ ingressClassName: 'qcloud' }, metadata, status)), {
    kind: 'ingress',
    key: 'shop/web',
    namespace: 'shop',
    name: 'web',
    uid: 'u-1',
    resourceVersion: '7',
    className: 'qcloud',
    isLeaving: false,
    hasFinalizer: true,
    annotations: { a: 'b' },
    createdAt: '2026-01-01T00:00:01Z',
    addresses: [{ ip: '10.0.0.9' }, { hostname: 'a.example' }],
  });
});

test('the head of an object of any shape', (t) => {
  for (const spec of [undefined, null, 1, 'text', [], { ingressClassName: {} }]) {
    for (const status of [undefined, null, [], { loadBalancer: 1 }, { loadBalancer: { ingress: {} } }]) {
      t.like(readIngressHead(ingress(spec, {}, status)), { addresses: [], hasFinalizer: false, createdAt: '' });
    }
  }
});

test('the spec of an Ingress', (t) => {
  const paths = [
    { path: '/a', pathType: 'Exact', backend: backend('one', { number: 80 }) },
    { pathType: 'ImplementationSpecific', backend: backend('two', { name: 'http' }) },
  ];
  const spec = {
    defaultBackend: backend('rest', { number: 8_080 }),
    rules: [{ host: 'a.example', http: { paths } }, { host: 'b.example' }, { http: { paths: paths.slice(0, 1) } }],
    tls: [{ hosts: ['a.example'], secretName: 'cert' }, {}],
  };
  t.deepEqual(readIngressSpec(ingress(spec)), {
    defaultBackend: { service: 'rest', port: 8_080 },
    rules: [
      { host: 'a.example', path: '/a', pathType: 'Exact', backend: { service: 'one', port: 80 } },
      { host: 'a.example', path: '/', pathType: 'ImplementationSpecific', backend: { service: 'two', port: 'http' } },
      { host: '', path: '/a', pathType: 'Exact', backend: { service: 'one', port: 80 } },
    ],
    bareHosts: ['b.example'],
    tls: [
      { hosts: ['a.example'], secretName: 'cert' },
      { hosts: [], secretName: '' },
    ],
  });
  t.deepEqual(readIngressSpec(ingress(undefined)), { rules: [], bareHosts: [], tls: [] });
});

const FAULTS: readonly (readonly [spec: unknown, fault: RegExp])[] = [
  [7, /spec of the Ingress shop\/web: the whole: expected an object, got 7/],
  [{ rules: {} }, /rules: expected a list/],
  [{ rules: Array.from({ length: 1_001 }, () => ({})) }, /rules: expected at most 1000 entries, got 1001/],
  [{ rules: [{ host: 'x'.repeat(2_000) }] }, /rules\[0\]\.host: expected a text of at most 1024 characters/],
  [
    { rules: [{ http: { paths: [{ path: '/', backend: backend('a', { number: 80 }) }] } }] },
    /pathType: expected a value/,
  ],
  [{ defaultBackend: backend('a', {}) }, /defaultBackend\.service\.port: expected either a name or a number/],
  [{ defaultBackend: backend('a', { name: 'b', number: 80 }) }, /expected either a name or a number/],
  [{ defaultBackend: backend('a', { number: 0 }) }, /port\.number: expected a whole number from 1 to 65535, got 0/],
  [{ tls: [{ hosts: 'a.example' }] }, /tls\[0\]\.hosts: expected a list/],
];

for (const [spec, fault] of FAULTS) {
  test(`refused: ${JSON.stringify(spec).slice(0, 80)}`, (t) => {
    t.regex(t.throws(() => readIngressSpec(ingress(spec)))?.message ?? '', fault);
  });
}

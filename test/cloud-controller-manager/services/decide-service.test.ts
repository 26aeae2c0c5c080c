import test from 'ava';
import { decideService } from '../../../cloud-controller-manager/services/decide-service.ts';
import { readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';

const OURS = 'example.com/clb';

type Row = readonly [
  type: string,
  loadBalancerClass: string | undefined,
  isLeaving: boolean,
  hasFinalizer: boolean,
  role: 'serve' | 'release' | 'ask' | 'ignore',
];

const ROWS: readonly Row[] = [
  ['LoadBalancer', undefined, false, false, 'serve'],
  ['LoadBalancer', OURS, false, true, 'serve'],
  ['LoadBalancer', 'example.com/other', false, false, 'ignore'],
  ['LoadBalancer', 'example.com/other', true, true, 'ignore'],
  ['LoadBalancer', undefined, true, true, 'release'],
  ['LoadBalancer', OURS, true, true, 'release'],
  ['LoadBalancer', undefined, true, false, 'ignore'],
  ['ClusterIP', undefined, false, true, 'ask'],
  ['NodePort', undefined, false, false, 'ignore'],
  ['ExternalName', undefined, true, true, 'ask'],
];

for (const [type, loadBalancerClass, isLeaving, hasFinalizer, role] of ROWS) {
  const words = [type, loadBalancerClass ?? 'no class', isLeaving && 'leaving', hasFinalizer && 'finalizer'];
  test(`${words.filter(Boolean).join(', ')}: ${role}`, (t) => {
    const metadata = {
      name: 'a',
      ...(isLeaving ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      finalizers: hasFinalizer ? ['service.kubernetes.io/load-balancer-cleanup'] : [],
    };
    const head = readServiceHead({ apiVersion: 'v1', kind: 'Service', metadata, spec: { type, loadBalancerClass } });
    t.is(decideService(head, OURS), role);
  });
}

test('one that was ours and has the class of others goes with its load balancer, and not before', (t) => {
  const record = JSON.stringify({ serial: 1, loadBalancerId: 'lb-a1b2c3d4' });
  const annotations = { 'tke.cloud.tencent.com/load-balancer-record': record };
  const spec = { type: 'LoadBalancer', loadBalancerClass: 'example.com/other' };
  const roleOf = (more: object): string => {
    const metadata = { name: 'a', annotations, finalizers: ['service.kubernetes.io/load-balancer-cleanup'], ...more };
    return decideService(readServiceHead({ apiVersion: 'v1', kind: 'Service', metadata, spec }), OURS);
  };
  t.is(roleOf({}), 'ignore');
  t.is(roleOf({ deletionTimestamp: '2026-01-01T00:00:00Z' }), 'release');
  t.is(roleOf({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [] }), 'ignore');
});

test('without a class of ours every class is of others', (t) => {
  const spec = { type: 'LoadBalancer', loadBalancerClass: '' };
  const head = readServiceHead({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec });
  t.is(decideService(head, ''), 'ignore');
});

test('one of another type goes with its record, and without one is asked for', (t) => {
  const record = JSON.stringify({ serial: 1 });
  const annotations = { 'tke.cloud.tencent.com/load-balancer-record': record };
  const roleOf = (more: object): string => {
    const metadata = { name: 'a', finalizers: ['service.kubernetes.io/load-balancer-cleanup'], ...more };
    const spec = { type: 'ClusterIP' };
    return decideService(readServiceHead({ apiVersion: 'v1', kind: 'Service', metadata, spec }), OURS);
  };
  t.is(roleOf({ annotations }), 'release');
  t.is(roleOf({}), 'ask');
  t.is(roleOf({ annotations, finalizers: [] }), 'ignore');
});

import test from 'ava';
import type { Lease } from '../../../agent/journal/lease.ts';
import { countWaiting, type WaitingAdd } from '../../../agent/pods/count-waiting.ts';
import type { KubePod } from '../../../agent/pods/kube-pod.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const pod = (name: string, change: Partial<KubePod> = {}): KubePod => ({
  ...{ namespace: 'default', name, uid: `uid-${name}`, isAlive: true, isRunning: false, ips: [] },
  ...change,
});
const lease = (name: string, podUid = `uid-${name}`): Lease =>
  sampleLease(`c-${name}`, 'eni-a', ['10.0.0.1'], { podName: name, podUid });
const add = (podName: string): WaitingAdd => ({ podNamespace: 'default', podName });

const row = test.macro(
  (t, pods: readonly KubePod[], leases: readonly Lease[], adds: readonly WaitingAdd[], expected: number) => {
    t.is(countWaiting(pods, leases, adds), expected);
  },
);

test('countWaiting: counts Pods without a lease', row, [pod('a'), pod('b')], [lease('a')], [], 1);
test('countWaiting: counts a Pod whose ADD waits once', row, [pod('a')], [], [add('a')], 1);
test('countWaiting: counts an ADD whose Pod is not known yet', row, [], [], [add('a')], 1);
test('countWaiting: counts each ADD that is of no Pod', row, [], [], [add(''), add('')], 2);
test('countWaiting: leaves out a Pod that is going', row, [pod('a', { isAlive: false })], [], [], 0);
test('countWaiting: knows a lease without a uid by its Pod’s name', row, [pod('a')], [lease('a', '')], [], 0);
test(
  'countWaiting: knows a lease of which only the address is known',
  row,
  [pod('a', { ips: ['fd00::1', '10.0.0.1'] }), pod('b', { ips: ['10.0.0.2'] }), pod('c')],
  [sampleLease('c-a', 'eni-a', ['10.0.0.1'], { podName: '', podUid: '' })],
  [],
  2,
);
test(
  'countWaiting: leaves out a Pod on the bridge, and one whose annotation is refused',
  row,
  [
    pod('a', { network: 'bridge' }),
    pod('b', { networkFault: 'expected one of …' }),
    pod('c', { network: 'route-eni' }),
  ],
  [],
  [],
  1,
);
test('countWaiting: takes a Pod of the same name for another', row, [pod('a')], [lease('a', 'old')], [], 1);

test(
  'countWaiting: leaves out who waits for an address that is kept for it',
  row,
  [pod('a', { isStatic: true }), pod('b')],
  [],
  [
    { ...add('a'), isStatic: true },
    { ...add('c'), isStatic: true },
  ],
  1,
);

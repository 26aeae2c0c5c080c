import test from 'ava';
import { podNetworkOf } from '../../../agent/journal/pod-network.ts';
import { withoutTakenOver } from '../../../agent/journal/taken-over.ts';
import { sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const pod = podNetworkOf(sampleLease('c1', 'eni-a', ['10.0.0.5', 'fd00::5']), { table: 4007 });
const supply = (ips: readonly string[], leaseKey = 'c1/eth0') => ({
  ...sampleSupply([]),
  takenOver: ips.map((ip) => ({ ip, leaseKey })),
});

test('withoutTakenOver: leaves a Pod whole that nothing was taken from', (t) => {
  t.is(withoutTakenOver(undefined, 'c1/eth0', pod), pod);
  t.is(withoutTakenOver(sampleSupply([]), 'c1/eth0', pod), pod);
  t.is(withoutTakenOver(supply(['10.0.0.5'], 'c2/eth0'), 'c1/eth0', pod), pod, 'another sandbox lost it');
});

test('withoutTakenOver: takes away one family, or the Pod with its last address', (t) => {
  t.deepEqual(withoutTakenOver(supply(['10.0.0.5']), 'c1/eth0', pod)?.ips, ['fd00::5']);
  t.is(withoutTakenOver(supply(['10.0.0.5', 'fd00::5']), 'c1/eth0', pod), undefined);
});

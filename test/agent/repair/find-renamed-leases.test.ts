import test from 'ava';
import { findRenamedLeases } from '../../../agent/repair/find-renamed-leases.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const MAC = '02:00:00:00:00:20';
const lease = {
  ...sampleLease('c', 'eni-a', ['10.0.0.5']),
  state: 'active' as const,
  hostVeth: { name: 'eni00000000020', mac: MAC, ifindex: 20 },
};
const link = { ifindex: 20, ifname: 'udev0', mac: MAC, mtu: 1500, isUp: true };
const namesOf = (...args: Parameters<typeof findRenamedLeases>) =>
  findRenamedLeases(...args).map((one) => one.hostVeth?.name);

test('findRenamedLeases: a lease gets the name that its link has now', (t) => {
  t.deepEqual(namesOf([lease], [link]), ['udev0']);
  t.deepEqual(namesOf([lease], [{ ...link, ifname: 'eni00000000020' }]), []);
});

test('findRenamedLeases: a link that is gone, or another one with its index, gives no name', (t) => {
  t.deepEqual(namesOf([lease], []), []);
  t.deepEqual(namesOf([lease], [{ ...link, mac: '02:00:00:00:00:21' }]), []);
  t.deepEqual(namesOf([{ ...lease, state: 'releasing' }], [link]), []);
});

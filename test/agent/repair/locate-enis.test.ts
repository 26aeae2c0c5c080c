import test from 'ava';
import type { EniRecord } from '../../../agent/journal/journal-content.ts';
import type { HostLink } from '../../../agent/node/host-link.ts';
import { absentEni, locateEnis } from '../../../agent/repair/locate-enis.ts';
import { retainEnisInUse } from '../../../agent/supply/retain-enis-in-use.ts';
import { sampleEni, sampleLease, sampleSupply } from '../pool/supply-sample.ts';

const MAC_A = '02:00:00:00:00:0a';
const MAC_B = '02:00:00:00:00:0b';
const link = (ifindex: number, mac: string, change: Partial<HostLink> = {}): HostLink => ({
  ifindex,
  ifname: `eth${ifindex}`,
  mac,
  mtu: 1500,
  ...change,
});
const eniA = sampleEni('eni-a', [], { mac: MAC_A });
const eniB = sampleEni('eni-b', [], { mac: MAC_B });
const recordsOf = (...records: EniRecord[]) => new Map(records.map((record) => [record.eniId, record]));

test('locateEnis: finds links by MAC and gives new ENIs a table from the index and the first free slot', (t) => {
  const { present, newRecords, missing } = locateEnis([eniA, eniB], [link(7, MAC_A), link(9, MAC_B)], recordsOf(), []);
  t.deepEqual(
    present.map(({ eniId, ifindex, table, slot }) => ({ eniId, ifindex, table, slot })),
    [
      { eniId: 'eni-a', ifindex: 7, table: 4007, slot: 1 },
      { eniId: 'eni-b', ifindex: 9, table: 4009, slot: 2 },
    ],
  );
  t.deepEqual(
    newRecords,
    present.map(({ eniId, mac, table, slot }) => ({ eniId, mac, table, slot })),
  );
  t.deepEqual(missing, []);
});

test('locateEnis: keeps table and slot when the link comes back with another index', (t) => {
  const records = recordsOf({ eniId: 'eni-a', mac: MAC_A, table: 4007, slot: 5 });
  const { present, newRecords } = locateEnis([eniA], [link(31, MAC_A)], records, []);
  t.like(present[0], { ifindex: 31, table: 4007, slot: 5 });
  t.deepEqual(newRecords, []);
});

test('locateEnis: records the MAC that an ENI has now, with table and slot as they were', (t) => {
  const records = recordsOf({ eniId: 'eni-a', mac: MAC_B, table: 4007, slot: 5 });
  const { newRecords } = locateEnis([eniA], [link(31, MAC_A)], records, []);
  t.deepEqual(newRecords, [{ eniId: 'eni-a', mac: MAC_A, table: 4007, slot: 5 }]);
});

test('locateEnis: takes the next table when that of the index belongs to another ENI', (t) => {
  const records = recordsOf({ eniId: 'eni-b', mac: MAC_B, table: 4007, slot: 1 });
  const { newRecords } = locateEnis([eniA], [link(7, MAC_A)], records, []);
  t.deepEqual(newRecords, [{ eniId: 'eni-a', mac: MAC_A, table: 4008, slot: 2 }]);
});

test('locateEnis: does not take a Pod link for an ENI, whatever its MAC', (t) => {
  const { present, missing } = locateEnis([eniA], [link(7, MAC_A, { ifalias: 'tke-eni/c/eth0' })], recordsOf(), []);
  t.deepEqual(present, []);
  t.deepEqual(missing, [eniA]);
});

test('locateEnis: takes the link itself and not what is built on it with the same MAC', (t) => {
  const bridge = link(12, MAC_A, { ifname: 'br0', kind: 'bridge' });
  const ifindexOf = (...links: HostLink[]) => locateEnis([eniA], links, recordsOf(), []).present[0]?.ifindex;
  t.is(ifindexOf(link(7, MAC_A), bridge), 7);
  t.is(ifindexOf(bridge, link(31, MAC_A)), 31, 'an ENI that came back has a higher index');
  t.is(ifindexOf(bridge, link(7, MAC_A, { kind: 'veth' })), 7, 'the older of two that software made');
});

test('locateEnis: finds an ENI by the MAC of its hardware, whatever other links show', (t) => {
  const nic = (ifindex: number, permAddress: string, change: Partial<HostLink> = {}) =>
    link(ifindex, permAddress, { permAddress, ...change });
  const back = nic(3, MAC_B, { mac: MAC_A, ifalias: 'tke-eni-nic/c/eth0/eth1' });
  const ifindexOf = (...links: HostLink[]) => locateEnis([eniA], links, recordsOf(), []).present[0]?.ifindex;
  t.is(ifindexOf(back, nic(4, MAC_A)), 4, 'a Pod chose the MAC');
  t.is(ifindexOf(back), undefined, 'also while the ENI is away');
  t.is(
    ifindexOf(link(3, MAC_A, { ifalias: 'tke-eni-nic/c/eth0/eth1' }), link(4, MAC_A)),
    4,
    'without a MAC of its own',
  );
  t.is(ifindexOf(nic(4, MAC_A, { mac: '02:11:22:33:44:55' })), 4, 'its MAC was changed');
});

test('locateEnis: a link without a MAC of its own is found as that of the last plan', (t) => {
  const changed = link(7, '02:11:22:33:44:55', { kind: 'veth' });
  const last = [{ eniId: 'eni-a', ifindex: 7, ifname: 'eth7' }];
  const indexesOf = (links: readonly HostLink[], enis = [eniA], before = last) =>
    locateEnis(enis, links, recordsOf(), before).present.map(({ ifindex }) => ifindex);
  t.deepEqual(indexesOf([changed]), [7]);
  t.deepEqual(indexesOf([changed, link(9, MAC_A)]), [9], 'the MAC counts more');
  t.deepEqual(indexesOf([{ ...changed, ifname: 'eth8' }]), [], 'another link has the index now');
  t.deepEqual(indexesOf([{ ...changed, permAddress: MAC_B }]), [], 'hardware says what it is');
  t.deepEqual(indexesOf([link(7, MAC_B)], [eniA, eniB]), [7], 'an ENI has one link');
});

test('locateEnis: refuses an ENI for which no slot is left', (t) => {
  const full = Array.from({ length: 255 }, (_, at) => ({ eniId: `e${at}`, mac: '', table: 5000 + at, slot: at + 1 }));
  const { present, refused } = locateEnis([eniA], [link(7, MAC_A)], recordsOf(...full), []);
  t.deepEqual(present, []);
  t.deepEqual(refused, [eniA]);
});

test('absentEni: keeps table and slot, with an index that no link has', (t) => {
  const gone = absentEni(eniA, { eniId: 'eni-a', mac: MAC_A, table: 4007, slot: 5 });
  t.like(gone, { table: 4007, slot: 5 });
  t.true(gone.ifindex > 0x7fff_0000);
});

test('retainEnisInUse: keeps an ENI that the supply dropped while a Pod has its address, and gives nothing new from it', (t) => {
  const before = sampleSupply([sampleEni('eni-a', ['10.0.0.5']), sampleEni('eni-b', ['10.0.0.6'])]);
  const next = sampleSupply([sampleEni('eni-b', ['10.0.0.6'])], 2);
  const kept = retainEnisInUse(next, before, [sampleLease('c', 'eni-a', ['10.0.0.5'])]);
  t.deepEqual(
    kept.enis.map(({ eniId }) => eniId),
    ['eni-b', 'eni-a'],
  );
  t.like(kept.enis[1], { attached: false, draining: true, addresses: [] });
  t.is(retainEnisInUse(next, before, []), next);
});

import test from 'ava';
import { findTable, mergeTableNames } from '../../../inspection/node/merge-table-names.ts';

const ENI = {
  eniId: 'eni-1',
  table: 4003,
  slot: 1,
  mac: undefined,
  link: undefined,
  ifindex: 3,
  ifname: 'eth1',
  addresses: [],
};

test('mergeTableNames: adds ours to those of the host', (t) => {
  const names = mergeTableNames(new Map([[77, 'vpn']]), [ENI, { ...ENI, eniId: undefined, table: 4004 }]);
  t.deepEqual(
    [77, 254, 3999, 4003, 4004].map((table) => names.get(table)),
    ['vpn', 'main', 'tke-pods', 'eni-1', 'eni-eth1'],
  );
  t.is(findTable(names, 'eni-1'), 4003);
  t.is(findTable(names, '0xfa3'), 4003);
  t.is(findTable(names, 'nobody'), undefined);
});

test('mergeTableNames: a name stands for one table, and the host chooses first', (t) => {
  const names = mergeTableNames(
    new Map([
      [100, 'tke-pods'],
      [4003, 'uplink'],
      [101, 'eni-eth1'],
    ]),
    [ENI, { ...ENI, eniId: undefined, table: 4004 }],
  );
  t.is(findTable(names, 'tke-pods'), 100);
  t.is(names.get(3999), undefined);
  t.is(names.get(4003), 'uplink');
  t.is(findTable(names, 'eni-eth1'), 101);
  t.is(new Set(names.values()).size, names.size);
});

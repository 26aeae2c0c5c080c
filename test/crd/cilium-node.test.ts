import test from 'ava';
import { MAX_CILIUM_ADDRESSES, readCiliumNode } from '../../crd/cilium-node.ts';

test('a CiliumNode of Cilium 1.18 in mode crd is read', (t) => {
  const { ipam, faults } = readCiliumNode({
    spec: {
      ipam: {
        pool: { '192.168.1.1': {}, '192.168.1.2': { owner: 'shop/db-0', resource: 'eni-1' }, 'fd00::2': {} },
        'pre-allocate': 8,
        'min-allocate': 2,
      },
    },
    status: {
      ipam: {
        used: { '192.168.1.1': { owner: 'router' } },
        'release-ips': { '192.168.1.2': 'marked-for-release' },
        'operator-status': { error: 'no free address' },
      },
    },
  });
  t.deepEqual(faults.list, []);
  t.deepEqual(
    [...ipam.pool],
    [
      ['192.168.1.1', {}],
      ['192.168.1.2', { owner: 'shop/db-0', resource: 'eni-1' }],
      ['fd00::2', {}],
    ],
  );
  t.deepEqual([...ipam.used], [['192.168.1.1', { owner: 'router' }]]);
  t.deepEqual([...ipam.releases], [['192.168.1.2', 'marked-for-release']]);
  t.deepEqual([ipam.minAllocate, ipam.preAllocate, ipam.maxAboveWatermark], [2, 8, undefined]);
  t.is(ipam.operatorError, 'no free address');
});

test('an object without IPAM has no addresses and no faults', (t) => {
  const { ipam, faults } = readCiliumNode({ metadata: { name: 'k8s1' }, spec: {} });
  t.deepEqual([ipam.pool.size, ipam.used.size, ipam.releases.size, faults.count], [0, 0, 0, 0]);
});

const FAULTY: readonly (readonly [name: string, pool: unknown, path: string, expected: RegExp])[] = [
  ['a CIDR', { '10.0.0.0/24': {} }, 'spec.ipam.pool.10.0.0.0/24', /CIDRs are not served/],
  ['a name', { router: {} }, 'spec.ipam.pool.router', /an IP address/],
  ['another form of an address', { 'FD00::1': {} }, 'spec.ipam.pool.FD00::1', /the form fd00::1/],
  ['a text as entry', { '10.0.0.1': 'free' }, 'spec.ipam.pool.10.0.0.1', /an object with owner/],
  ['a number as owner', { '10.0.0.1': { owner: 7 } }, 'spec.ipam.pool.10.0.0.1.owner', /a text/],
  ['a list', ['10.0.0.1'], 'spec.ipam.pool', /an object with addresses as keys/],
];

for (const [name, pool, path, expected] of FAULTY)
  test(`${name} in the pool is one fault, and the other entries are read`, (t) => {
    const isTable = !Array.isArray(pool);
    const { ipam, faults } = readCiliumNode({
      spec: { ipam: { pool: isTable ? { ...(pool as object), '10.0.0.9': {} } : pool } },
    });
    t.is(faults.list[0]?.path, path);
    t.regex(faults.list[0]?.expected ?? '', expected);
    t.is(faults.count, 1);
    t.is(ipam.pool.has('10.0.0.9'), isTable);
  });

test('a state of a release that is not known, and counts that are none, are faults', (t) => {
  const { ipam, faults } = readCiliumNode({
    spec: { ipam: { 'pre-allocate': -1, 'min-allocate': '2' } },
    status: { ipam: { 'release-ips': { '10.0.0.1': 'gone', '10.0.0.2': 'released' } } },
  });
  t.deepEqual(faults.list.map(({ path }) => path).sort(), [
    'spec.ipam.min-allocate',
    'spec.ipam.pre-allocate',
    'status.ipam.release-ips.10.0.0.1',
  ]);
  t.deepEqual([...ipam.releases], [['10.0.0.2', 'released']]);
});

test('a pool beyond the bound is cut and says so', (t) => {
  const pool = Object.fromEntries(
    Array.from({ length: MAX_CILIUM_ADDRESSES + 5 }, (_, index) => [`10.0.${index >> 8}.${index & 255}`, {}]),
  );
  const { ipam, faults } = readCiliumNode({ spec: { ipam: { pool } } });
  t.is(ipam.pool.size, MAX_CILIUM_ADDRESSES);
  t.deepEqual(
    faults.list.map(({ expected }) => expected),
    [`at most ${MAX_CILIUM_ADDRESSES} addresses`],
  );
});

import type { PoolReplyInit, SummaryReplyInit } from '../../../agent/api/ops-messages.ts';
import type { JournalContent } from '../../../agent/journal/journal-content.ts';
import type { Lease } from '../../../agent/journal/lease.ts';

const OWNER = { containerId: 'a1b2c3d4e5f60718', ifName: 'eth0', podNamespace: 'default', podName: 'web-0' };

/** A node with two ENIs, dual stack on the first, and an address in every state. */
export const POOL_SAMPLE: PoolReplyInit = {
  addresses: [
    { ip: '10.0.2.10', family: 4, eniId: 'eni-aaaa1111', state: 2, assignmentId: 'asg-1', ...OWNER },
    { ip: 'fd00:10:0:2::a', family: 6, eniId: 'eni-aaaa1111', state: 2, assignmentId: 'asg-2', ...OWNER },
    { ip: '10.0.2.11', family: 4, eniId: 'eni-aaaa1111', state: 1, assignmentId: 'asg-3' },
    { ip: '10.0.2.12', family: 4, eniId: 'eni-aaaa1111', state: 3, coolRemainingMs: 61_000, assignmentId: 'asg-4' },
    { ip: '10.0.2.13', family: 4, eniId: 'eni-aaaa1111', state: 4, assignmentId: 'asg-5' },
    { ip: '10.0.1.20', family: 4, eniId: 'eni-bbbb2222', state: 6, assignmentId: 'asg-6' },
    { ip: '10.0.1.21', family: 4, eniId: 'eni-bbbb2222', state: 5, assignmentId: 'asg-7' },
    {
      ip: '10.0.1.22',
      family: 4,
      eniId: 'eni-bbbb2222',
      state: 2,
      assignmentId: 'asg-8',
      unlisted: true,
      containerId: 'ffee00112233',
      ifName: 'net1',
    },
  ],
  enis: [
    {
      eniId: 'eni-aaaa1111',
      ifname: 'eth1',
      ifindex: 3,
      table: 4003,
      slot: 1,
      mac: '52:54:00:00:00:01',
      ready: true,
      attached: true,
      primaryIps: ['10.0.2.5', 'fd00:10:0:2::5'],
      subnetCidrs: ['10.0.2.0/24', 'fd00:10:0:2::/64'],
    },
    {
      eniId: 'eni-bbbb2222',
      mac: '52:54:00:00:00:02',
      problem: 'no link with its MAC has appeared',
      attached: true,
      primaryIps: ['10.0.1.5'],
      subnetCidrs: ['10.0.1.0/24'],
    },
  ],
  warmMin: 2,
  warmMax: 5,
  limit: 30,
  demand: 5,
  waiting: [{ containerId: 'cafe', ifName: 'eth0', podNamespace: 'shop', podName: 'cart-7' }],
  supplyEpoch: 42,
  families: [4, 6],
  hasSupply: true,
  cooldownMs: 120_000,
};

/** The same node's agent, not wholly well. */
export const SUMMARY_SAMPLE: SummaryReplyInit = {
  agentVersion: '0.1.0+0123abc',
  nodeName: 'node-1',
  uptimeMs: 3 * 3_600_000,
  ruleMode: 'compact',
  status: { code: 51, msg: 'something of others is in our way', details: 'rule 1536 is not ours' },
  leasesActive: 2,
  leasesPending: 1,
  calls: [
    {
      verb: 'add',
      total: 120,
      failed: 2,
      sumUs: 600_000,
      buckets: [
        { upToUs: 5_000, count: 100 },
        { upToUs: 10_000, count: 15 },
        { upToUs: 25_000, count: 5 },
        { upToUs: 0, count: 0 },
      ],
    },
    { verb: 'del', total: 80, sumUs: 400_000, buckets: [{ upToUs: 5_000, count: 80 }] },
  ],
  drift: 3,
  repaired: 4,
  passes: 128,
  conflicts: ['ip rule 1536 from all lookup 100 (protocol static)'],
  held: ['ip rule add pref 1537 from 10.0.2.5 lookup 4003'],
  api: {
    qps: 5,
    burst: 10,
    calls: 321,
    failed: 1,
    throttled: 2,
    throttledMs: 1_200,
    silenceMs: 4_000,
    heard: true,
    tokensLeft: 8,
  },
  journalOrigin: 'existing',
  lastPassAgeMs: 12_000,
  lastPassCause: 'rtnetlink',
  supplySource: 'cluster',
  bridge: {
    defaultNetwork: 'tke-bridge',
    podCidrs: ['172.20.0.64/26'],
    formerCidrs: ['172.20.0.0/26'],
    addresses: 61,
    inUse: 2,
    masquerade: true,
    masqueradeWhy: 'there is no ip-masq-agent',
    wiring: 'bridge',
  },
};

/** The lease of one of its Pods. */
export const LEASE_SAMPLE: Lease = {
  ...OWNER,
  network: 'tke-route-eni',
  plugin: 'route-eni',
  netns: '/var/run/netns/cni-1234',
  podUid: 'uid-1',
  addresses: [
    { ip: '10.0.2.10', family: 4, eniId: 'eni-aaaa1111', assignmentId: 'asg-1' },
    { ip: 'fd00:10:0:2::a', family: 6, eniId: 'eni-aaaa1111', assignmentId: 'asg-2' },
  ],
  eniId: 'eni-aaaa1111',
  state: 'active',
  hostVeth: { name: 'eni0123456789a', mac: '0a:00:00:00:00:01', ifindex: 9 },
  podMac: '0a:00:00:00:00:02',
  mtu: 1500,
  createdAtMs: 1_000,
};

/** A journal of such a node. */
export const JOURNAL_SAMPLE: JournalContent = {
  leases: [LEASE_SAMPLE],
  cooldowns: [
    {
      ip: '10.0.2.12',
      family: 4,
      eniId: 'eni-aaaa1111',
      assignmentId: 'asg-4',
      freedAtMs: 2_000,
      coolUntilMs: 122_000,
      cooldownMs: 120_000,
    },
  ],
  enis: [
    { eniId: 'eni-aaaa1111', mac: '52:54:00:00:00:01', table: 4003, slot: 1 },
    { eniId: 'eni-gone', mac: '52:54:00:00:00:09', table: 4009, slot: 3 },
  ],
  offers: [{ ip: '10.0.2.13', family: 4, eniId: 'eni-aaaa1111', assignmentId: 'asg-5' }],
  supply: {
    nodeName: 'node-1',
    epoch: 42,
    enis: [
      {
        eniId: 'eni-aaaa1111',
        mac: '52:54:00:00:00:01',
        primary: [
          { ip: 'fd00:10:0:2::5', family: 6, gateway: 'fe80::1', subnetCidr: 'fd00:10:0:2::/64' },
          { ip: '10.0.2.5', family: 4, gateway: '10.0.2.1', subnetCidr: '10.0.2.0/24' },
        ],
        attached: true,
        draining: false,
        addresses: [
          { ip: '10.0.2.10', family: 4, assignmentId: 'asg-1', state: 'assigned' },
          { ip: '10.0.2.11', family: 4, assignmentId: 'asg-3', state: 'assigned' },
          { ip: '10.0.2.12', family: 4, assignmentId: 'asg-4', state: 'assigned' },
          { ip: '10.0.2.13', family: 4, assignmentId: 'asg-5', state: 'assigned' },
          { ip: '10.0.2.14', family: 4, assignmentId: 'asg-9', state: 'releasing' },
        ],
      },
      {
        eniId: 'eni-bbbb2222',
        mac: '52:54:00:00:00:02',
        primary: [{ ip: '10.0.1.5', family: 4, gateway: '10.0.1.1', subnetCidr: '10.0.1.0/24' }],
        attached: false,
        draining: false,
        addresses: [{ ip: '10.0.1.20', family: 4, assignmentId: 'asg-6', state: 'assigned' }],
      },
    ],
    warm: { min: 2, max: 5 },
  },
};

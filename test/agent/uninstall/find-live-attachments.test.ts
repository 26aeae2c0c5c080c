import test from 'ava';
import type { CriSandbox } from '../../../agent/cri/sandbox-view.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import {
  type AttachmentFacts,
  describeLive,
  findLiveAttachments,
} from '../../../agent/uninstall/find-live-attachments.ts';

const HOUR_MS = 3_600_000;

function lease(containerId: string, fields: Partial<Lease> = {}): Lease {
  return {
    ...{
      containerId,
      ifName: 'eth0',
      network: 'tke-route-eni',
      plugin: 'route-eni',
      netns: `/run/netns/${containerId}`,
    },
    ...{ podNamespace: 'shop', podName: `web-${containerId}`, podUid: `uid-${containerId}`, eniId: 'eni-1', mtu: 1500 },
    addresses: [{ ip: '10.0.2.5', family: 4, eniId: 'eni-1', assignmentId: 'a-1' }],
    state: 'active',
    createdAtMs: 0,
    ...fields,
  };
}

function sandbox(id: string, state: CriSandbox['state']): CriSandbox {
  return { id, state, podName: `web-${id}`, podNamespace: 'shop', podUid: `uid-${id}` };
}

const NOTHING = { veths: [], ipams: [] };

function living(sights: Partial<AttachmentFacts>): readonly string[] {
  const found = findLiveAttachments({
    ...{ leases: [], evidence: NOTHING, sandboxes: undefined, isNetnsAbsent: () => false, nowMs: HOUR_MS },
    ...sights,
  });
  return found.map(({ containerId, ips }) => containerId || ips.join());
}

const finds = test.macro((t, sights: Partial<AttachmentFacts>, expected: readonly string[]) => {
  t.deepEqual(living(sights), expected);
});

test('findLiveAttachments: without a runtime a namespace that is there is in use', finds, { leases: [lease('a')] }, [
  'a',
]);
test(
  'findLiveAttachments: without a runtime a namespace that is gone is not',
  finds,
  { leases: [lease('a')], isNetnsAbsent: () => true },
  [],
);
test(
  'findLiveAttachments: a sandbox that the runtime lists is in use',
  finds,
  { leases: [lease('a')], sandboxes: [sandbox('a', 'ready')] },
  ['a'],
);
test(
  'findLiveAttachments: a stopped sandbox is in use while its namespace is there: the runtime needs our plugin to end it',
  finds,
  { leases: [lease('a')], sandboxes: [sandbox('a', 'not-ready')] },
  ['a'],
);
test(
  'findLiveAttachments: a stopped sandbox without its namespace is not in use',
  finds,
  { leases: [lease('a')], sandboxes: [sandbox('a', 'not-ready')], isNetnsAbsent: () => true },
  [],
);
test(
  'findLiveAttachments: a sandbox that the runtime removed is not in use once its namespace is gone',
  finds,
  { leases: [lease('a')], sandboxes: [], isNetnsAbsent: () => true },
  [],
);
test(
  'findLiveAttachments: a sandbox that no runtime lists is in use while its namespace is there',
  finds,
  { leases: [lease('a')], sandboxes: [] },
  ['a'],
);
test(
  'findLiveAttachments: one that is being made, and so not listed yet, is in use',
  finds,
  { leases: [lease('a', { createdAtMs: HOUR_MS - 1_000 })], sandboxes: [] },
  ['a'],
);
test(
  'findLiveAttachments: what the runtime never lists, for it is not of Kubernetes, is judged by its namespace',
  finds,
  { leases: [lease('a', { podName: '' })], sandboxes: [] },
  ['a'],
);
test(
  'findLiveAttachments: a link or a rule of ours that no lease explains counts as in use',
  finds,
  {
    leases: [lease('a')],
    sandboxes: [],
    isNetnsAbsent: () => true,
    evidence: {
      veths: ['a', 'b'].map((containerId, at) => ({
        ...{ containerId, ifName: 'eth0', name: `eni${at}`, mac: '', ifindex: at + 7, mtu: 1500, ips: [], table: 4003 },
      })),
      ipams: [
        { ip: '10.0.2.5', table: 4003 },
        { ip: '10.0.2.9', table: 4003 },
      ],
    },
  },
  ['b', '10.0.2.9'],
);

test('describeLive: names Pods with their addresses, and counts those beyond twenty', (t) => {
  const many = findLiveAttachments({
    ...{ evidence: NOTHING, sandboxes: undefined, isNetnsAbsent: () => false, nowMs: HOUR_MS },
    leases: Array.from({ length: 23 }, (_, at) => lease(String(at))),
  });
  t.regex(describeLive(many), /^shop\/web-0 \(10\.0\.2\.5\), .*shop\/web-19 \(10\.0\.2\.5\), and 3 more$/);
  t.regex(describeLive(findLiveAttachments({ ...SIGHTS_OF_CTR })), /^sandbox c\/eth0 \(10\.0\.2\.5\)$/);
});

const SIGHTS_OF_CTR: AttachmentFacts = {
  leases: [lease('c', { podName: '', podNamespace: '' })],
  ...{ evidence: NOTHING, sandboxes: undefined, isNetnsAbsent: () => false, nowMs: HOUR_MS },
};

const link = { name: 'eni1', mac: '', ifindex: 7, mtu: 1500, table: 4003, isMarked: true };
const UNNAMED = {
  ...NOTHING,
  unnamed: [
    { ...link, ips: ['10.0.2.5'] },
    { ...link, name: 'eni2', ips: [] },
  ],
};
test(
  'findLiveAttachments: a link without an alias is in use while an address without a lease is routed to it',
  finds,
  { evidence: UNNAMED },
  ['unknown-eni1'],
);
test(
  'findLiveAttachments: and is that of the lease with the address',
  finds,
  { evidence: UNNAMED, leases: [lease('a')] },
  ['a'],
);

const RULED = { veths: [], ipams: [{ ip: '10.0.2.7', table: 4003 }] };
test('findLiveAttachments: an address with rules and no lease is a Pod of another plugin', finds, { evidence: RULED }, [
  '10.0.2.7',
]);
test(
  'findLiveAttachments: one of the role uplinks has rules without a Pod',
  finds,
  { evidence: RULED, uplinkIps: new Set(['10.0.2.7']) },
  [],
);
test(
  'findLiveAttachments: and is in use while another program routes it to a link',
  finds,
  { evidence: RULED, uplinkIps: new Set(['10.0.2.7']), routedIps: new Set(['10.0.2.7']) },
  ['10.0.2.7'],
);

import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { nftReplaceCommands } from '../../../dataplane/nft-replace.ts';
import { nftTable } from '../../../dataplane/nft-table.ts';
import { evaluatePacketMark, type NftPacket } from '../../../inspection/firewall/evaluate-packet-mark.ts';
import { readNftFacts } from '../../../inspection/node/read-nft-facts.ts';
import { createNetns, deleteNetns } from '../../../netlink/netns.ts';

// Our own table as nft lists it, run on packets. That the kernel does the same is judged by packets in the e2e tests.

const ENIS = [5, 6].map((slot) => ({
  eniId: `eni-${slot}`,
  mac: `02:00:00:00:00:0${slot}`,
  ifindex: slot,
  ifname: `eth${slot}`,
  mtu: 1500,
  table: 4000 + slot,
  slot,
  addresses: [],
}));

const NODE: NodeNetwork = {
  ruleMode: 'compact',
  eniMarkMask: 0x00ff0000,
  rpFilterMode: 'loose',
  egress: 'eni',
  primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.1.2'] },
  podCidrs: [],
  families: [4, 6],
  nodePort: true,
  vpcCidrs: ['10.0.0.0/16', 'fd00:10::/32'],
};

const PACKET: NftPacket = {
  family: 4,
  src: '10.0.2.3',
  dst: '1.1.1.1',
  iifname: 'eni0123456789a',
  iifgroup: 4005,
  mark: 0,
  direction: 'original',
  ctMark: 0,
  isSourceRouted: true,
  isLocal: false,
};

/** The objects of `nft -j list ruleset` for a node's table. */
async function listed(node: NodeNetwork): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const name = `tke-test-${randomBytes(5).toString('hex')}`;
  const netns = createNetns(name);
  try {
    await openNft({ netnsPath: netns.path }).load(nftReplaceCommands(nftTable(node, ENIS)));
    const facts = await readNftFacts({ netnsPath: netns.path });
    if (facts.kind === 'unknown') throw new Error(facts.why);
    return facts.value.objects;
  } finally {
    netns.close();
    deleteNetns(name);
  }
}

type Case = readonly [what: string, packet: Partial<NftPacket>, expected: number | 'drop'];

const COMPACT: readonly Case[] = [
  ['a Pod of the first ENI', {}, 0x50000],
  ['a Pod of the second ENI', { iifgroup: 4006 }, 0x60000],
  ['bits of others stay', { mark: 0x4000 }, 0x54000],
  ['a link in no group', { iifgroup: 0 }, 0],
  ['a link in a group of nobody', { iifgroup: 77 }, 0],
  ['what comes in by the primary', { iifname: 'eth0', iifgroup: 0 }, 0],
  ['what comes in by an ENI', { iifname: 'eth5', iifgroup: 0 }, 0x50000],
  ['what comes in by an ENI with bits of others', { iifname: 'eth6', iifgroup: 0, mark: 0xff4000 }, 0x64000],
  ['an answer of a NodePort', { direction: 'reply', ctMark: 0x80 }, 0x50080],
  ['an answer of a connection by the other ENI', { direction: 'reply', ctMark: 0x60000 }, 0x60000],
  ['a forged IPv6 source', { family: 6, src: 'fd00::bad', dst: 'fd00::1', isSourceRouted: false }, 'drop'],
  ['a link-local IPv6 source', { family: 6, src: 'fe80::1', dst: 'fd00::1', isSourceRouted: false }, 0x50000],
  ['an unspecified IPv6 source', { family: 6, src: '::', dst: 'ff02::1', isSourceRouted: false }, 0x50000],
  ['a forged IPv4 source, which rp_filter is for', { src: '10.9.9.9', isSourceRouted: false }, 0x50000],
];

const PER_POD: readonly Case[] = [
  ['a Pod', {}, 0],
  ['what comes in by an ENI', { iifname: 'eth5', iifgroup: 0 }, 0],
  ['an answer of a NodePort', { direction: 'reply', ctMark: 0x80 }, 0x80],
  ['a forged IPv6 source', { family: 6, src: 'fd00::bad', dst: 'fd00::1', isSourceRouted: false }, 'drop'],
];

const EGRESS: readonly Case[] = [
  ['a Pod to the internet', {}, 0x50080],
  ['a Pod to the VPC', { dst: '10.0.9.9' }, 0x50000],
  ['a Pod to the metadata service', { dst: '169.254.0.23' }, 0x50000],
  ['a Pod to the node', { isLocal: true }, 0x50000],
  ['a Pod with an EIP', { src: '10.0.2.9' }, 0x50000],
  ['an answer', { direction: 'reply' }, 0x50000],
  ['IPv6 to the internet', { family: 6, src: 'fd00:10::3', dst: '2606:4700::1' }, 0x50080],
  ['IPv6 to the VPC', { family: 6, src: 'fd00:10::3', dst: 'fd00:10::9' }, 0x50000],
];

const TABLES: readonly (readonly [string, NodeNetwork, readonly Case[]])[] = [
  ['compact', NODE, COMPACT],
  ['per-pod', { ...NODE, ruleMode: 'per-pod' }, PER_POD],
  ['egress by the node', { ...NODE, egress: 'node', egressExempt: ['10.0.2.9'] }, EGRESS],
];

for (const [name, node, cases] of TABLES) {
  test(`evaluatePacketMark: understands the table, ${name}`, async (t) => {
    const objects = await listed(node);
    for (const [what, packet, expected] of cases) {
      const { verdict, mark, unsupported } = evaluatePacketMark(objects, { ...PACKET, ...packet });
      t.deepEqual(unsupported, [], what);
      t.is(verdict === 'drop' ? 'drop' : mark, expected, what);
    }
  });
}

test('evaluatePacketMark: names a statement that it does not know, and leaves its rule out', (t) => {
  const table = { family: 'inet', table: 'tke_eni' };
  const objects = [
    { chain: { ...table, name: 'prerouting', hook: 'prerouting', prio: -150 } },
    {
      rule: {
        ...table,
        chain: 'prerouting',
        expr: [{ match: { op: '==', left: { rt: { key: 'mtu' } }, right: 9 } }, { drop: null }],
      },
    },
    { rule: { ...table, chain: 'prerouting', expr: [{ xt: { type: 'target', name: 'TPROXY' } }] } },
    { rule: { ...table, chain: 'prerouting', expr: [{ goto: { target: 'prerouting' } }] } },
  ];
  const { verdict, unsupported, chains } = evaluatePacketMark(objects, PACKET);
  t.is(verdict, 'accept');
  t.true(unsupported.length >= 2);
  t.true(chains.length < 100, 'a circle ends');
});

import test from 'ava';
import type { Flow } from '../../../dataplane/fast-path/flow-layout.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import { fastPathHop } from '../../../inspection/explain/fast-path-hop.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import { programFilter } from '../../cli/commands/doctor/traffic-bytes.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';
import { NOT_ASKED } from './not-asked.ts';

const [POD, ENI] = [12, 3];
const NOW_NS = 5_000_000_000n;
const PACKET = { src: '10.0.2.3', dst: '1.1.1.1', iif: POD, oif: ENI, own: 'src' } as const;
const LEARNED: Flow = {
  ...{ family: 4, protocol: 'tcp', src: '10.0.2.3', dst: '10.0.9.9', sport: 4000, dport: 443 },
  ...{ iif: POD, oif: ENI, epoch: 0, expiryNs: NOW_NS + 600_000_000n },
};

const WHOLE = [programFilter(POD, 'ingress', 'tke_fast'), programFilter(ENI, 'egress', 'tke_learn')];

function hopOf(filters: typeof WHOLE, flows: readonly Flow[] | 'unknown', packet: Parameters<typeof fastPathHop>[1]) {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const traffic = { ...facts.host.traffic, filters: known(filters) };
  const context = buildExplainContext({ ...facts, host: { ...facts.host, traffic } }, unknown('not asked', ''), {
    ...NOT_ASKED,
    readFlows: () => (flows === 'unknown' ? unknown('no permission', 'run as root') : known({ flows, nowNs: NOW_NS })),
  });
  return fastPathHop(context, packet);
}

test('fastPathHop: says which flows of the Pod are followed, and how old the decision is', (t) => {
  const named: Flow = { ...LEARNED, dst: '1.1.1.1', protocol: 'udp', expiryNs: NOW_NS + 1_000_000_000n };
  const others: readonly Flow[] = [
    { ...LEARNED, src: '10.0.2.4' },
    { ...LEARNED, oif: 99 },
    { ...LEARNED, iif: 99 },
  ];
  const hop = hopOf(WHOLE, [...others, LEARNED, named], PACKET);
  t.is(hop?.verdict, 'ok');
  t.deepEqual(hop?.details, [
    'flows of 10.0.2.3 that are followed: 2',
    'udp 10.0.2.3:4000 to 1.1.1.1:443: the kernel decided 0 ms ago',
    'tcp 10.0.2.3:4000 to 10.0.9.9:443: the kernel decided 400 ms ago',
  ]);
});

test('fastPathHop: lists a few flows of many, and those to the Pod by its address', (t) => {
  const flows = Array.from({ length: 8 }, (_, at): Flow => ({ ...LEARNED, sport: 4000 + at }));
  const details = hopOf(WHOLE, flows, { ...PACKET, own: 'dst', dst: '10.0.9.9', src: '1.1.1.1' })?.details ?? [];
  t.is(details[0], 'flows of 10.0.9.9 that are followed: 8');
  t.is(details.length, 7);
  t.is(details.at(-1), 'and 3 more');
});

test('fastPathHop: names the link without a program, and says nothing where there is no fast path', (t) => {
  const first = WHOLE.slice(0, 1);
  t.regex(hopOf(first, [], PACKET)?.title ?? '', /^fast path: not from /);
  t.regex(hopOf(first, [], PACKET)?.details[0] ?? '', / has none at its egress$/);
  t.regex(hopOf(WHOLE.slice(1), [], PACKET)?.details[0] ?? '', / has no program at its ingress$/);
  t.is(hopOf([], [LEARNED], PACKET), undefined);
  t.is(hopOf([programFilter(POD, 'ingress', 'cil_from')], [LEARNED], PACKET), undefined);
});

test('fastPathHop: says why the flows are not known', (t) => {
  t.deepEqual(hopOf(WHOLE, 'unknown', PACKET)?.details, [
    'which flows are followed is not known: no permission',
    'next: run as root',
  ]);
});

const [POD_LINK, MANY] = ['eni0', Array.from({ length: 9 }, (_, at) => `eni-${at}`)];

function hopOfFlowtable(flowLinks: readonly string[], isTranslated = false) {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const links = facts.host.links.map((link) => (link.ifindex === 100 ? { ...link, ifname: POD_LINK } : link));
  const nft = known({ objects: [], ourTable: undefined, flowLinks });
  const context = buildExplainContext({ ...facts, host: { ...facts.host, links, nft } }, unknown('', ''), NOT_ASKED);
  return fastPathHop(context, { ...PACKET, iif: 100, isTranslated });
}

test('fastPathHop: names the links of a flowtable, and how to see its flows', (t) => {
  for (const isTranslated of [false, true]) {
    const hop = hopOfFlowtable([POD_LINK, 'eth0', 'eth1'], isTranslated);
    t.is(hop?.verdict, 'ok');
    t.is(hop?.title, 'fast path: the flowtable follows flows from eni0 to eth1');
    t.deepEqual(hop?.details, [
      'links in the flowtable: eni0, eth1, eth0',
      'flows that it follows: conntrack -L | grep OFFLOAD',
    ]);
  }
});

test('fastPathHop: names the link that is not in the flowtable, and some of many that are', (t) => {
  t.is(hopOfFlowtable(['eth1'])?.title, 'fast path: not from eni0 to eth1, eni0 is not in the flowtable');
  t.is(hopOfFlowtable([POD_LINK])?.title, 'fast path: not from eni0 to eth1, eth1 is not in the flowtable');
  t.regex(hopOfFlowtable([...MANY, 'eth1', POD_LINK])?.details[0] ?? '', /: eni0, eth1, eni-0, .*, eni-5, and 3 more$/);
  t.is(hopOfFlowtable([])?.details[0], 'links in the flowtable: none');
});

test('fastPathHop: programs follow no flow whose addresses are translated', (t) => {
  t.is(hopOf(WHOLE, [LEARNED], { ...PACKET, isTranslated: true }), undefined);
});

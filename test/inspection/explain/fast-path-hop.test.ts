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

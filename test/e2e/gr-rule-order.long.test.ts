import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { PRIORITY } from '../../dataplane/numbers.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { startTcpStream } from '../support/tcp-stream.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { openHybridWorld } from './packets/hybrid-world.ts';

// A GlobalRoute Pod and a Pod of an ENI of one node talk to each other while the rules are written, one after the other with a
// pause: as when the first ENI comes to a node of GlobalRoute Pods, and as after another program deleted all rules.

/** Between rules, so that each half-way state is tried. */
const PAUSE_MS = 100;

const isOfBlock = (operation: Operation): boolean =>
  operation.kind === 'add-rule' && operation.rule.priority === PRIORITY.podCidr;

/** The planted fault. */
const blockLast = (operations: readonly Operation[]): readonly Operation[] => [
  ...operations.filter((operation) => !isOfBlock(operation)),
  ...operations.filter(isOfBlock),
];

const losses = async (order: (operations: readonly Operation[]) => readonly Operation[]) => {
  const world = await openHybridWorld({
    n1: { ruleMode: 'per-pod', wiring: 'bridge', pods: { g1: 'bridge', e1: 'eni' } },
  });
  try {
    const [gr, eni] = [world.party('g1'), world.party('e1')];
    const node = world.node('n1');
    const udp = await startTraffic(eni, gr, { rate: 1_000 });
    const tcp = await startTcpStream(gr, eni, 7_001);
    await node.netns.ip('rule', 'flush', 'protocol', '84');
    const written = await node.reachOneByOne(() => sleep(PAUSE_MS), order);
    const lines = [...describeLoss(await udp.finish()), ...(await tcp.finish())];
    const repeated = (await world.vpc.repeatedPackets()).length;
    world.vpc.allowRepeatedPackets();
    return { lines, repeated, rules: written.filter(({ kind }) => kind === 'add-rule').length };
  } finally {
    await world.close();
  }
};

test.serial(
  'diffHost: rules that come one by one lose no packet between a GlobalRoute Pod and one of an ENI',
  async (t) => {
    t.timeout(120_000);
    const { lines, repeated, rules } = await losses((operations) => operations);
    t.true(rules >= 4, `${rules} rules`);
    t.deepEqual(lines, []);
    t.is(repeated, 0);
  },
);

test.serial('the same with rule 1024 written last: packets are lost, or go round through the VPC', async (t) => {
  t.timeout(120_000);
  const { lines, repeated } = await losses(blockLast);
  t.true(lines.length > 0, 'numbers are missing');
  t.true(repeated > 0, 'packets passed the router twice');
});

import test from 'ava';
import fc from 'fast-check';
import { evaluateDrift } from '../../../ipamd/decide/evaluate-drift.ts';
import { assertLaw } from '../../support/law.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import { CLAIMS, type ClaimKey, DirectWorld, NODES, type NodeName } from '../support/exclusive-world.ts';
import type { CallFate } from '../support/nec-world.ts';

type Move =
  | { readonly kind: 'step'; readonly node: NodeName; readonly fate: CallFate }
  | { readonly kind: 'agent'; readonly node: NodeName; readonly isReaping: boolean }
  | { readonly kind: 'keep' }
  | { readonly kind: 'pool'; readonly node: NodeName; readonly count: number }
  | { readonly kind: 'limit'; readonly node: NodeName; readonly most: number }
  | { readonly kind: 'leave'; readonly node: NodeName; readonly how: 'no' | 'drain' }
  | { readonly kind: 'pod'; readonly claim: ClaimKey; readonly node: NodeName | undefined; readonly isSpecial: boolean }
  | { readonly kind: 'end'; readonly claim: ClaimKey };

const NODE = fc.constantFrom(...NODES);
const CLAIM = fc.constantFrom(...CLAIMS);
const FATE = fc.constantFrom<CallFate>('done', 'done', 'done', 'refused', 'lost-before', 'lost-after');
const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('step' as const), node: NODE, fate: FATE }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('agent' as const), node: NODE, isReaping: fc.boolean() }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'keep' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pool' as const), node: NODE, count: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('limit' as const), node: NODE, most: fc.nat(3) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('leave' as const),
      node: NODE,
      how: fc.constantFrom('no' as const, 'drain' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pod' as const),
      claim: CLAIM,
      node: fc.option(NODE, { nil: undefined }),
      isSpecial: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end' as const), claim: CLAIM }) },
);
const HISTORY = fc.array(MOVE, { maxLength: 60, size: 'max' });

function play(world: DirectWorld, move: Move): void {
  switch (move.kind) {
    case 'step':
      world.step(move.node, move.fate);
      return;
    case 'agent':
      world.agent(move.node, move.isReaping);
      return;
    case 'keep':
      for (const eniId of world.eniIds()) world.keep(eniId);
      return;
    case 'pool':
      world.nodes[move.node].podsOfPool = move.count;
      return;
    case 'limit':
      world.nodes[move.node].maxDirectENI = move.most;
      return;
    case 'leave':
      world.nodes[move.node].leaving = move.how;
      return;
    case 'pod':
      world.pod(move.claim, move.node, move.isSpecial ? ['sg-special'] : undefined);
      return;
    case 'end':
      world.end(move.claim);
  }
}

const MOST_ROUNDS = 120;

/** Agents, nodes and VpcENIs each in turn, with a cloud that does everything, until nothing changes any more. */
function settle(world: DirectWorld): number {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const before = JSON.stringify([world.nodes, [...world.vpcEnis], [...world.cloud]]);
    for (const node of NODES) {
      world.agent(node, true);
      world.step(node, 'done');
    }
    for (const eniId of world.eniIds()) world.keep(eniId);
    if (JSON.stringify([world.nodes, [...world.vpcEnis], [...world.cloud]]) === before) return round;
  }
  return MOST_ROUNDS;
}

test('decideNode: takes no exclusive ENI from a Pod, and gives none to two, whatever happens', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, (history) => {
        const world = new DirectWorld();
        for (const move of history) play(world, move);
        t.deepEqual(world.broken, []);
      }),
    { numRuns: IS_LONG ? 500 : 125 },
  );
});

test('decideNode: gives each Pod that waits its exclusive ENI in the end, and leaks none', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, (history) => {
        const world = new DirectWorld();
        for (const move of history) play(world, move);
        for (const name of NODES) Object.assign(world.nodes[name], { leaving: 'no', maxDirectENI: 3, podsOfPool: 0 });
        t.true(settle(world) < MOST_ROUNDS);
        t.deepEqual(world.broken, []);
        for (const key of CLAIMS) {
          const { node, uid } = world.claims[key];
          if (node !== undefined)
            t.deepEqual(
              world.serving(node, key).map(({ claim }) => claim?.uid),
              [uid],
            );
        }
        for (const name of NODES) {
          t.deepEqual(world.nodes[name].status.intents ?? [], []);
          t.is(world.serving(name).length, 1, 'one spare');
        }
        const named = new Set(world.eniIds());
        t.deepEqual(
          [...world.cloud.keys()].filter((eniId) => !named.has(eniId)),
          [],
        );
        for (const eniId of world.vpcEnis.keys()) t.true(world.cloud.has(eniId));
      }),
    { numRuns: IS_LONG ? 400 : 100 },
  );
});

test('decideNode: gives back what is nobody’s, and keeps what is kept, when nodes leave', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(HISTORY, fc.constantFrom('drain' as const, 'force' as const), (history, leaving) => {
        const world = new DirectWorld();
        for (const move of history) play(world, move);
        const kept = CLAIMS.filter((key) => !world.claims[key].isEnded);
        for (const key of kept) world.pod(key, undefined, undefined);
        for (const name of NODES) Object.assign(world.nodes[name], { leaving, podsOfPool: 0 });
        t.true(settle(world) < MOST_ROUNDS);
        t.deepEqual(world.broken, []);
        for (const name of NODES) {
          t.deepEqual(world.nodes[name].status.eniInfos ?? [], []);
        }
        t.true(world.cloud.size <= kept.length);
        t.deepEqual([...world.vpcEnis.keys()].sort(), [...world.cloud.keys()].sort());
      }),
    { numRuns: IS_LONG ? 400 : 100 },
  );
});

test('evaluateDrift: finds nothing in what a node has of exclusive ENIs', (t) => {
  const world = new DirectWorld();
  world.pod('ns/web-0', 'n1', undefined);
  settle(world);
  t.deepEqual(evaluateDrift(world.nodes.n1.status, { enis: onInstance(world, 'ins-n1'), isComplete: true }), []);
});

function onInstance(world: DirectWorld, instanceId: string) {
  return new Map([...world.cloud].filter(([, eni]) => eni.instanceID === instanceId));
}

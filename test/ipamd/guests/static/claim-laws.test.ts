import test from 'ava';
import fc from 'fast-check';
import { assertLaw } from '../../../support/law.ts';
import { IS_LONG } from '../../../support/suite-part.ts';
import { ClaimWorld, EXPIRED_MS } from './claim-world.ts';

const NODES = { a: 'z1', b: 'z1', c: 'z2' } as const;
const NAMES = ['ns/web-0', 'ns/web-1', 'ns/web-2'] as const;

const key = fc.constantFrom(...NAMES);
const node = fc.constantFrom('a', 'b', 'c');
/** Most Pods go to nodes of one zone, or nothing but waiting would happen. */
const place = fc.constantFrom('a', 'a', 'b', 'b', 'a', 'b', 'c', '');

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('create' as const), key, node: place }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('schedule' as const), key, node }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('delete' as const), key, isForced: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('move' as const), key, node: place, isForced: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('decide' as const), key }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'decide-all' as const }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constantFrom('turn' as const, 'agent' as const, 'kubelet' as const), node }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('kill' as const), afterWrites: fc.integer({ min: 0, max: 3 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('node' as const), node, isAlive: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      key,
      of: fc.constantFrom('claims' as const, 'vips' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1_000, max: 200_000 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'settle' as const }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function play(world: ClaimWorld, one: Step): void {
  if (one.kind === 'create') world.createPod(one.key, one.node);
  else if (one.kind === 'schedule') world.schedule(one.key, one.node);
  else if (one.kind === 'delete') world.deletePod(one.key, one.isForced);
  else if (one.kind === 'move') {
    world.deletePod(one.key, one.isForced);
    world.createPod(one.key, one.node);
  } else if (one.kind === 'decide') world.decide(one.key);
  else if (one.kind === 'decide-all') world.decideAll();
  else if (one.kind === 'kill') world.writesLeft = one.afterWrites;
  else if (one.kind === 'node') world.setAlive(one.node, one.isAlive);
  else if (one.kind === 'end') world.deleteObject(one.of, one.key);
  else if (one.kind === 'wait') world.nowMs += one.ms;
  else if (one.kind === 'settle') world.settle(3);
  else world[one.kind](one.node);
}

for (const kinds of [[], ['nominated']]) {
  const what = kinds.length === 0 ? '' : ' with an address that is asked for';
  test(`decideClaim: in random histories${what} no address is live twice, none is lost, none outlives its expiry`, async (t) => {
    await assertLaw(
      t,
      () =>
        fc.property(fc.array(step, { minLength: 10, maxLength: 120 }), (steps) => {
          const world = new ClaimWorld(NODES, kinds);
          for (const one of steps) {
            play(world, one);
            world.judge();
            if (world.faults.length > 0) throw new Error(world.faults.join('; '));
          }
          world.restart();
          for (const name of world.nodes.keys()) world.setAlive(name, true);
          world.settle();
          world.judgeRest();
          if (world.faults.length > 0) throw new Error(world.faults.join('; '));
          const waiting = [...world.pods].filter(([name, { uid, nodeName }]) => {
            const zone = world.nodes.get(nodeName)?.zone;
            const ip = world.promised.get(name) ?? (kinds.length > 0 && name === NAMES[0] ? '10.1.0.200' : undefined);
            const isNear = ip === undefined || (zone === 'z1') === ip.startsWith('10.1.');
            return nodeName !== '' && isNear && isHome(world, name, zone) && !world.sandboxes.has(uid);
          });
          if (waiting.length > 0) throw new Error(`waits forever: ${waiting.map(([name]) => name).join(' ')}`);
          for (const name of [...world.pods.keys()]) world.deletePod(name, false);
          world.settle();
          world.nowMs += EXPIRED_MS;
          world.settle();
          const left = [...world.claims.keys(), ...world.vips.keys(), ...world.cloud.keys()];
          if (left.length > 0) throw new Error(`left after expiry: ${left.join(' ')}`);
          if (world.faults.length > 0) throw new Error(world.faults.join('; '));
        }),
      { numRuns: IS_LONG ? 500 : 150 },
    );
  });
}

/** A claim may have an address of another zone although no sandbox ever had it. */
function isHome(world: ClaimWorld, name: string, zone: string | undefined): boolean {
  return world.vipsOf(name).every(({ spec }) => spec.ip.startsWith('10.1.') === (zone === 'z1'));
}

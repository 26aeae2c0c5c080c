/** The process dies before or after each of its calls, the last of which may have had its effect: the next one ends right. */
import test from 'ava';
import type { Crash } from '../process-lives.ts';
import { OWN, RouteWorld } from './route-world.ts';

const SECOND_MS = 1_000;
const NOBODY = '10.0.0.250';
const KINDS = [
  ['--routes=global'],
  ['--routes=table', '--route-tables=rtb-test0001,rtb-test0002'],
  ['--routes=cluster'],
] as const;
const CRASHES = (['read', 'change'] as const).flatMap((of) =>
  (['before', 'after'] as const).map((moment) => ({ of, moment })),
);

/** One life: a route to make, one to move, one whose node is gone, one of others. Returns what is wrong in the end. */
async function live(flags: readonly string[], crash: Crash): Promise<{ faults: readonly string[]; isDone: boolean }> {
  const world = await RouteWorld.start('--controllers=*', ...flags);
  const { lives } = world.world;
  const isCluster = flags[0] === '--routes=cluster';
  await world.join('stays', '172.16.1.0/24');
  await world.join('moves', '172.16.2.0/24');
  await world.join('goes', '172.16.3.0/24');
  await world.advance(10 * SECOND_MS);
  for (const at of world.places) world.addRoute('192.168.0.0/24', NOBODY, isCluster ? '' : OWN, at);
  lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  const [, second] = [await world.leave('moves'), await world.join('moved', '172.16.2.0/24')];
  await world.leave('goes');
  await world.join('comes', '172.16.4.0/24');
  for (let count = 0; count < 240; count++) {
    await world.advance(SECOND_MS);
    if (lives.isOver) await world.replace();
  }
  const wanted = [
    ['172.16.1.0/24', world.ipOf('stays')],
    ['172.16.2.0/24', second],
    ['172.16.4.0/24', world.ipOf('comes')],
    ['192.168.0.0/24', NOBODY],
  ].map((one) => one.join(' by '));
  const faults: string[] = [];
  for (const at of world.places) {
    const found = world.routes().flatMap((one) => (one.place === at ? [`${one.cidr} by ${one.gatewayIp}`] : []));
    if (found.toSorted().join() !== wanted.join())
      faults.push(`${at} has ${found.toSorted().join()}, not ${wanted.join()}`);
  }
  for (const name of ['stays', 'moved', 'comes']) {
    if (world.networkOf(name) !== 'False RouteCreated') faults.push(`${name} has ${world.networkOf(name)}`);
  }
  await world.stop();
  return { faults, isDone: lives.crash === undefined };
}

/** Calls of the changes; later ones are renewals and comparisons. */
const MAX_CALLS = 40;

for (const flags of KINDS) {
  for (const { of, moment } of CRASHES) {
    test(`node-route-controller: ${flags[0]}: the routes are right when the process dies ${moment} each call to ${of}`, async (t) => {
      let at = 0;
      for (; at < MAX_CALLS; at++) {
        const { faults, isDone } = await live(flags, { of, at: at + 1, moment });
        t.deepEqual(faults, [], `dead ${moment} call ${at + 1} to ${of}`);
        if (!isDone) break;
      }
      t.true(at > 5, `only ${at} calls`);
    });
  }
}

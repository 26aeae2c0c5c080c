/** A leader dies before or after each of its calls, and its call may still happen long after: the next leader ends right. */
import { longTest, shortTest } from '../../support/suite-part.ts';
import { routesScene } from './routes-scene.ts';

const MINUTE_MS = 60_000;

/**
 * What becomes of the call at which the leader dies: it never arrives, its answer is lost, or it arrives when another
 * leads already.
 */
const FATES = ['lost', 'unanswered', 'late'] as const;
type Fate = (typeof FATES)[number];

const CALLS = ['DescribeGlobalRoutes', 'CreateGlobalRoutes', 'DeleteGlobalRoutes'] as const;
type Call = (typeof CALLS)[number];

/** One life: a route to create, one to move, one whose node is gone, two of others. Returns what is wrong in the end. */
async function live(call: Call, nth: number, fate: Fate, globalRouteEcmp: boolean): Promise<readonly string[]> {
  const scene = await routesScene({ globalRouteEcmp });
  const { clock, host, server } = scene.shell;
  scene.addRoute({ cidr: '172.16.1.0/24', gatewayIp: '10.0.0.77' });
  scene.addRoute({ cidr: '172.16.9.0/24', gatewayIp: '10.0.0.78' });
  const foreign = scene.addRoute({ cidr: '192.168.0.0/24', gatewayIp: '10.0.0.77' });
  const others = scene.addRoute({ cidr: '172.16.8.0/24', gatewayIp: '10.0.0.77', description: 'tke-eni cls-other001' });
  for (const index of [0, 1, 2]) await scene.join(`n${index}`, `172.16.${index}.0/24`);
  let seen = 0;
  let isDead = false;
  const later = Promise.withResolvers<void>();
  host.gate = async ({ action, moment }) => {
    if (isDead || action !== call) return 'go';
    if (moment === (fate === 'unanswered' ? 'after' : 'before')) seen += 1;
    if (seen < nth) return 'go';
    isDead = true;
    server.partition('first');
    if (fate === 'late') await later.promise;
    return fate === 'late' ? 'go' : 'lose';
  };
  const first = await scene.start('first');
  await clock.advance(5_000);
  const second = await scene.start('second');
  await clock.advance(3 * MINUTE_MS);
  later.resolve();
  await clock.advance(3 * MINUTE_MS);
  const faults = isDead ? [] : [`it did not die: ${seen} of ${nth}`];
  if (isDead && !second.isLeading) faults.push('the second does not lead');
  const text = (cidr: string): string => JSON.stringify(scene.routes().filter((one) => one.cidr === cidr));
  for (const index of [0, 1, 2]) {
    const cidr = `172.16.${index}.0/24`;
    const gateways = scene.routes().flatMap((one) => (one.cidr === cidr ? [one.gatewayIp] : []));
    if (gateways.join() !== scene.ipOf(`n${index}`)) faults.push(`${cidr} leads to ${text(cidr)}`);
    if (scene.networkOf(`n${index}`) !== 'False RouteCreated') faults.push(`n${index} ${scene.networkOf(`n${index}`)}`);
  }
  if (text('172.16.9.0/24') !== '[]') faults.push(`left: ${text('172.16.9.0/24')}`);
  for (const route of [foreign, others]) if (!scene.routes().includes(route)) faults.push(`${route.cidr} is touched`);
  await clock.run(Promise.all([first.close(), second.close()]));
  return faults;
}

/** Occurrences of each call in this life. */
const NTHS: Readonly<Record<Call, readonly number[]>> = {
  DescribeGlobalRoutes: [1],
  CreateGlobalRoutes: [1, 2],
  DeleteGlobalRoutes: [1, 2],
};

for (const call of CALLS) {
  for (const nth of NTHS[call]) {
    for (const fate of FATES) {
      const register = nth === 1 && fate !== 'lost' ? shortTest : longTest;
      register(`routes: the leader dies at ${call} ${nth}, which is ${fate}`, async (t) => {
        t.deepEqual(await live(call, nth, fate, false), []);
        t.deepEqual(await live(call, nth, fate, true), [], 'where the cloud takes several routes to one network');
      });
    }
  }
}

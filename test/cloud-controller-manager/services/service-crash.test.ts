import test from 'ava';
import type { Fault } from '../../../sim/vpc/api/faults.ts';
import { partOf, shortTest } from '../../support/suite-part.ts';
import type { Crash } from '../process-lives.ts';
import { DEATHS, dieAtEachCall, type Left } from './die-at-each-call.ts';
import { ServiceWorld } from './service-world.ts';

const SECOND_MS = 1_000;
const LIMIT_MS = 20 * 60 * SECOND_MS;

/** A Service is made, its port changes, and it goes; a process follows each that died. A load balancer of others stays. */
async function live(crash: Crash | undefined): Promise<Left> {
  const world = await ServiceWorld.start();
  const { lives } = world.world;
  const faults: string[] = [];
  const ip = await world.join('n1');
  const bought = await world.buy();
  const foreign = world.balancer();
  await world.advance(10 * SECOND_MS);
  const own = () => world.balancers().filter(({ loadBalancerId }) => loadBalancerId !== bought);
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (let ms = 0; !holds(); ms += SECOND_MS) {
      if (ms >= LIMIT_MS) return void faults.push(`${what} never`);
      if (lives.isOver) await world.replace();
      await world.advance(SECOND_MS);
      if (own().length > 1) return void faults.push('two load balancers');
    }
  };
  const bound = (): string =>
    own()
      .flatMap(({ listeners }) => [...listeners.values()])
      .flatMap((one) => [...one.targets.values()].map((target) => `${one.port} ${target.ip}:${target.port}`))
      .join();
  if (crash !== undefined) lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await until('the target', () => bound() === `80 ${ip}:30080` && world.ingress('web').length === 1);
  await world.patch('web', { spec: { ports: [{ port: 81, nodePort: 30_081 }] } });
  await until('the other port', () => bound() === `81 ${ip}:30081`);
  await world.delete('web');
  await until('the end', () => world.service('web') === undefined);
  if (own().length > 0) faults.push('a load balancer is left');
  if (world.balancer() !== foreign) faults.push('a load balancer of others was changed');
  await world.stop();
  return { faults, isCrashDone: lives.crash === undefined };
}

for (const death of partOf(DEATHS, (one) => one.of === 'change' && one.moment === 'after')) {
  test(`runServiceController: one load balancer, and none in the end, when the process dies ${death.moment} each call to ${death.of}`, async (t) => {
    await dieAtEachCall(t, death, live, 5);
  });
}

/** What may happen to the call that makes a load balancer. */
const ANSWERS: readonly (readonly [title: string, fault: Fault])[] = [
  ['its answer is lost', { kind: 'reset', after: true }],
  ['it does not arrive', { kind: 'reset' }],
  ['it is never answered', { kind: 'hang', after: true }],
  ['an error is answered though it was done', { kind: 'error', code: 'InternalError', after: true }],
  ['its task fails', { kind: 'task', fate: 'fail' }],
  ['its task is not known', { kind: 'task', fate: 'vanish' }],
  ['its task takes minutes', { kind: 'slow-task', ms: 150_000 }],
];

for (const [title, fault] of ANSWERS) {
  shortTest(`runServiceController: one load balancer when it is made and ${title}`, async (t) => {
    const world = await ServiceWorld.start();
    const ip = await world.join('n1');
    world.world.scene.host.faults.add({ fault, actions: ['CreateLoadBalancer'], times: 1 });
    await world.create('web', { spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
    await world.advance(600_000);
    t.deepEqual(world.listeners(), { 'TCP/80': [`${ip}:30080 10`] });
    t.is(world.ingress('web')[0]?.['ip'], world.balancer().vip);
    await world.stop();
  });
}

shortTest('runServiceController: a Service that goes while its load balancer is made leaves none', async (t) => {
  const world = await ServiceWorld.start();
  await world.join('n1');
  const fault: Fault = { kind: 'reset', after: true };
  world.world.scene.host.faults.add({ fault, actions: ['CreateLoadBalancer'], times: 3 });
  await world.create('web');
  await world.advance(2_500);
  await world.delete('web');
  await world.advance(900_000);
  t.is(world.service('web'), undefined);
  t.deepEqual(world.balancers(), []);
  await world.stop();
});

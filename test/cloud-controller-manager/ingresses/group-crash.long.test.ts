// A life for each call at which a process may die: some sixty of them.
import test from 'ava';
import type { Crash } from '../process-lives.ts';
import { DEATHS, dieAtEachCall, type Left } from '../services/die-at-each-call.ts';
import { IngressWorld, ruleOf } from './ingress-world.ts';

const SECOND_MS = 1_000;
const LIMIT_MS = 30 * 60 * SECOND_MS;
const HOST = 'www.example.com';

/** Two Ingresses join a group, one leaves it, and the other one goes; a process follows each that died. */
async function live(crash: Crash | undefined): Promise<Left> {
  const world = await IngressWorld.start();
  const { services } = world;
  const { lives } = services.world;
  const faults: string[] = [];
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (let ms = 0; !holds(); ms += SECOND_MS) {
      if (ms >= LIMIT_MS) return void faults.push(`${what} never: ${JSON.stringify(world.rules())}`);
      if (lives.isOver) await services.replace();
      await world.advance(SECOND_MS);
    }
  };
  const are = (wanted: object): boolean => JSON.stringify(world.rules()) === JSON.stringify(wanted);
  const target = [`${await world.serve('web')}:8080 10`];
  const bought = await services.buy();
  const annotations = {
    'kubernetes.io/ingress.existLbId': bought,
    'ingress.cloud.tencent.com/enable-group': 'true',
  };
  if (crash !== undefined) lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.create('one', { annotations, spec: ruleOf('/a', HOST) });
  await until('the first rule', () => are({ [`HTTP:80 ${HOST}/a`]: target }));
  await world.create('two', { annotations, spec: ruleOf('/b', HOST) });
  const both = { [`HTTP:80 ${HOST}/a`]: target, [`HTTP:80 ${HOST}/b`]: target };
  await until('both rules', () => are(both) && world.addresses('two').length === 1);
  await world.delete('one');
  await until('one rule', () => are({ [`HTTP:80 ${HOST}/b`]: target }) && world.ingress('one') === undefined);
  await world.delete('two');
  await until('the end', () => world.ingress('two') === undefined);
  const left = Object.keys(services.listeners());
  if (left.join() !== 'UDP/53') faults.push(`left on the load balancer: ${left.join()}`);
  await world.stop();
  return { faults, isCrashDone: lives.crash === undefined };
}

for (const death of DEATHS) {
  test(`a group of Ingresses: each rule, and no listener left, when the process dies ${death.moment} each call to ${death.of}`, async (t) => {
    await dieAtEachCall(t, death, live, 15);
  });
}

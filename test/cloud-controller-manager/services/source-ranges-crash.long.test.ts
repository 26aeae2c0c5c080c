/** Processes that die while the security group for source ranges is made, changed, taken off and deleted. */
import test from 'ava';
import type { Crash } from '../process-lives.ts';
import { DEATHS, dieAtEachCall, type Left } from './die-at-each-call.ts';
import { ServiceWorld } from './service-world.ts';

const SECOND_MS = 1_000;
const LIMIT_MS = 30 * 60 * SECOND_MS;

/** A Service has source ranges, other ranges and another port, none, some again, and goes; a process follows each that died. */
async function live(crash: Crash): Promise<Left> {
  const world = await ServiceWorld.start();
  const { lives } = world.world;
  const faults: string[] = [];
  await world.join('n1');
  await world.advance(10 * SECOND_MS);
  const { securityGroups } = world.world.scene.host.model.state;
  /** `TCP/80 for TCP 80 10.0.0.0/8`: the listeners, and whom the groups of the load balancer admit. */
  const state = (): string =>
    world
      .balancers()
      .map(({ listeners, securityGroupIds }) => {
        const ports = [...listeners.values()].map(({ protocol, port }) => `${protocol}/${port}`);
        const rules = securityGroups.rulesOf(securityGroupIds);
        const admitted = rules.map(({ protocol, port, cidr }) => `${protocol} ${port} ${cidr}`);
        return `${ports.join()} for ${securityGroupIds.length === 0 ? 'everyone' : admitted.join()}`;
      })
      .join();
  const until = async (wanted: string, groups: number, isClosed: boolean): Promise<void> => {
    for (let ms = 0; state() !== wanted || securityGroups.made.size !== groups; ms += SECOND_MS) {
      if (ms >= LIMIT_MS)
        return void faults.push(`${wanted} never: ${state()} with ${securityGroups.made.size} groups`);
      if (lives.isOver) await world.replace();
      await world.advance(SECOND_MS);
      if (securityGroups.made.size > 1) return void faults.push('two security groups');
      if (isClosed && /TCP.* for everyone/.test(state())) return void faults.push(`it is open: ${state()}`);
    }
  };
  const spec = (port: number, ...loadBalancerSourceRanges: readonly string[]) => ({
    spec: { ports: [{ port, nodePort: 30_000 + port }], loadBalancerSourceRanges },
  });
  lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.create('web', spec(80, '10.0.0.0/8'));
  await until('TCP/80 for TCP 80 10.0.0.0/8', 1, true);
  await world.patch('web', spec(81, '192.0.2.0/24'));
  await until('TCP/81 for TCP 81 192.0.2.0/24', 1, true);
  await world.patch('web', spec(81));
  await until('TCP/81 for everyone', 0, false);
  await world.patch('web', spec(81, '10.0.0.0/8'));
  await until('TCP/81 for TCP 81 10.0.0.0/8', 1, false);
  await world.delete('web');
  await until('', 0, true);
  for (let second = 0; world.service('web') !== undefined && second < 600; second++) {
    if (lives.isOver) await world.replace();
    await world.advance(SECOND_MS);
  }
  if (world.service('web') !== undefined) faults.push('the Service is left');
  if (securityGroups.made.size > 0) faults.push('a security group is left');
  await world.stop();
  return { faults, isCrashDone: lives.crash === undefined };
}

for (const death of DEATHS) {
  test(`runServiceController: one security group, never an open listener, none in the end, when the process dies ${death.moment} each call to ${death.of}`, async (t) => {
    await dieAtEachCall(t, death, live, 5);
  });
}

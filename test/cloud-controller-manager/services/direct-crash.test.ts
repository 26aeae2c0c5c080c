/** Processes that die while Pods are the backends: at each call of a creation, changes of endpoints and ports, turns to Nodes and back, and the end. */
import test from 'ava';
import { BACKEND_READY_GATE as GATE } from '../../../crd/names.ts';
import { IS_LONG } from '../../support/suite-part.ts';
import type { Crash } from '../process-lives.ts';
import { published, startWithLists } from './published-lists.ts';

const SECOND_MS = 1_000;
const LIMIT_MS = 20 * 60 * SECOND_MS;
const OWNER_TAG = 'tke-eni-owner';
/** `make test` has the first of so many calls. */
const SHORT_STRIDE = 9;

const direct = (value: string) => ({ metadata: { annotations: { 'service.cloud.tencent.com/direct-access': value } } });

/** What a life left. */
type Left = { readonly faults: readonly string[]; readonly isCrashDone: boolean };

/** A Service with Pods lives from its creation to its end; a process follows the one that died. A load balancer of others stays. */
async function live(crash: Crash | undefined): Promise<Left> {
  const { world, pods } = await startWithLists();
  const { lives } = world.world;
  const foreignId = await world.buy();
  const foreignOf = () => world.balancers().find(({ loadBalancerId }) => loadBalancerId === foreignId);
  const foreign = foreignOf();
  const own = () => world.balancers().filter(({ loadBalancerId }) => loadBalancerId !== foreignId);
  const listOf = (node: string): string => published(world, node)?.join() ?? '';
  const targets = () =>
    own().flatMap(({ listeners }) => [...listeners.values()].flatMap((one) => [...one.targets.values()]));
  const bound = (): string =>
    own()
      .flatMap(({ listeners }) => [...listeners.values()])
      .flatMap((one) =>
        [...one.targets.values()].map((target) => `${one.port} ${target.ip}:${target.port} ${target.weight}`),
      )
      .toSorted()
      .join();
  const faults: string[] = [];
  let serves = false;
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (let ms = 0; !holds(); ms += SECOND_MS) {
      if (ms >= LIMIT_MS)
        return void faults.push(`${what} never: ${bound()}, published ${listOf('n1')} ${listOf('n2')}`);
      if (lives.isOver) await world.replace();
      await world.advance(SECOND_MS);
      await pods.sync();
      if (own().length > 1) return void faults.push(`${what}: two load balancers`);
      if (serves && targets().every(({ weight }) => weight === 0)) faults.push(`${what}: no target has a weight`);
      const listed = `${listOf('n1')},${listOf('n2')}`.split(',');
      const bare = targets().filter(({ type, ip }) => type === 'ENI' && !listed.includes(ip));
      faults.push(...bare.map(({ ip }) => `${what}: ${ip} is a target and not published`));
    }
  };
  const isTrue = (pod: string): boolean => pods.condition(pod, GATE)?.startsWith('True') === true;
  const nodes = (port: number): string =>
    [`${world.nodeIp('n1')}:${port} 10`, `${world.nodeIp('n2')}:${port} 10`]
      .map((target) => `81 ${target}`)
      .toSorted()
      .join();

  if (crash !== undefined) lives.crash = { ...crash, at: lives.made[crash.of] + crash.at };
  await world.create('web', { ...direct('true'), spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  const a = await pods.run('web', 'a', { node: 'n1', gates: [GATE] });
  const isMade = () => bound() === `80 ${a}:8080 10` && isTrue('a') && world.ingress('web').length === 1;
  await until('the first Pod', isMade);
  serves = true;
  const b = await pods.run('web', 'b', { node: 'n2', gates: [GATE] });
  const both = [`80 ${a}:8080 10`, `80 ${b}:8080 10`].toSorted().join();
  await until('the second Pod', () => bound() === both && isTrue('b'));
  await pods.delete('a');
  const drained = [`80 ${a}:8080 0`, `80 ${b}:8080 10`].toSorted().join();
  await until('weight 0', () => bound() === drained);
  await pods.end('a');
  await until('the end of a Pod', () => bound() === `80 ${b}:8080 10` && listOf('n1') === '');
  serves = false;
  await world.patch('web', { spec: { ports: [{ port: 81, nodePort: 30_081 }] } });
  await until('the other port', () => bound() === `81 ${b}:8080 10`);
  serves = true;
  await world.patch('web', direct('false'));
  await until('Nodes', () => bound() === nodes(30_081) && listOf('n2') === '');
  await world.patch('web', direct('true'));
  await until('Pods again', () => bound() === `81 ${b}:8080 10` && listOf('n2') === b);
  serves = false;
  const owners = own().map(({ tags }) => tags[OWNER_TAG]);
  if (owners.join() !== `cls-service1/service/${world.service('web')?.metadata.uid}`)
    faults.push(`owner ${owners.join()}`);
  await world.delete('web');
  await until('the end', () => world.service('web') === undefined && own().length === 0 && listOf('n2') === '');
  if (foreignOf() !== foreign) faults.push('a load balancer of others was changed');
  await world.stop();
  return { faults, isCrashDone: lives.crash === undefined };
}

const STRIDE = IS_LONG ? 1 : SHORT_STRIDE;
const MOMENTS = IS_LONG ? (['before', 'after'] as const) : (['after'] as const);
const CASES = (['change', 'read'] as const).flatMap((of) => MOMENTS.map((moment) => ({ of, moment })));

for (const { of, moment } of CASES) {
  test(`Pods as backends: one load balancer, all published, and nothing left, when the process dies ${moment} each call to ${of}`, async (t) => {
    const stride = of === 'read' && !IS_LONG ? STRIDE * 4 : STRIDE;
    let at = 1;
    for (; ; at += stride) {
      const { faults, isCrashDone } = await live({ of, at, moment });
      t.deepEqual(faults, [], `dead ${moment} call ${at} to ${of}`);
      if (!isCrashDone) break;
    }
    t.true(at > 20, `only ${at} calls`);
  });
}

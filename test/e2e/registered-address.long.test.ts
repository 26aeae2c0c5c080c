import test from 'ava';
import { NODE_ENI_CONFIG_ANNOTATION, POD_ANNOTATION } from '../../crd/names.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// No controller deregisters a Pod that ended, and the node's pool is full: its address goes to no other Pod, and no request with it.

const DIRECT = {
  'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId,
  'service.cloud.tencent.com/direct-access': 'true',
} as const;
const ROUNDS = 10;

let system: System;
let cluster: BalancedSystem;

test.before(async (t) => {
  t.timeout(240_000);
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'other' }],
    joinsAll: false,
    ipamds: 1,
    agentFlags: { 'ip-cooldown': '1s', 'force-reuse-after': '0s', 'add-wait': '2s' },
  });
  await system.join('n1');
  const { routeMaxAttach, maxIpPerEni } = NODE_ENI_CONFIG_ANNOTATION;
  await system.patchNec('n1', { metadata: { annotations: { [routeMaxAttach]: '1', [maxIpPerEni]: '3' } } });
  await system.awaitNec(
    'n1',
    'three addresses',
    ({ status }) => (status?.eniInfos ?? []).flatMap(({ addresses = [] }) => addresses).length === 3,
  );
  cluster = await balanceSystem(system, [system.node('n1')]);
  await system.node('n1').awaitReady();
});
test.after.always(() => cluster?.close() ?? system?.close());

test('while no controller runs, Pods churn through a full pool, and no request reaches a Pod of another Service', async (t) => {
  t.timeout(480_000);
  const node = system.node('n1');
  const client = system.cloud.vpc.node('other').netns;
  const marksOf = (app: string) => ({ labels: { app }, annotations: { [POD_ANNOTATION.networks]: 'tke-route-eni' } });
  const web = await cluster.serve(await node.runPod('web-1', { marks: marksOf('web') }));
  const vip = await cluster.balance({ name: 'web', annotations: DIRECT });
  await cluster.awaitAnswer(client, vip);
  const target = `TCP/80 ${web.pod.ip}:80 10`;
  t.true(cluster.targets().includes(target));

  for (const ccm of cluster.ccms) await ccm.kill();
  await web.server.stop();
  await node.removePod('web-1');
  const others: (readonly string[])[] = [];
  const curl = ['curl', '--silent', '--max-time', '0.3', `http://${vip}/`];
  for (let round = 0; round < ROUNDS; round++) {
    const pods = await Promise.all(
      [0, 1].map((at) => node.runPod(`other-${round}-${at}`, { marks: marksOf('other') })),
    );
    const served = await Promise.all(pods.map((pod) => cluster.serve(pod)));
    t.false(pods.some(({ ip }) => ip === web.pod.ip));
    t.not((await client.tryRun(curl)).code, 0, 'a target without a Pod answers nothing');
    others.push(...served.map((one) => one.clients()));
    if (round === ROUNDS - 1) {
      const failed = await t.throwsAsync(node.runPod('third', { marks: marksOf('other'), waitMs: 8_000 }));
      t.regex(failed?.message ?? '', /in load balancers 1/);
    }
    for (const { server } of served) await server.stop('SIGKILL');
    for (const { name } of pods) await node.removePod(name);
  }
  t.deepEqual(others.flat(), []);
  t.true(cluster.targets().includes(target), 'the load balancer has it all the time');

  for (const ccm of cluster.ccms) ccm.start();
  const marks = marksOf('other');
  const pods = [];
  for (const name of ['last-1', 'last-2', 'last-3']) pods.push(await node.runPod(name, { marks, waitMs: 120_000 }));
  t.true(pods.some(({ ip }) => ip === web.pod.ip));
  t.false(cluster.targets().some((one) => one.includes(`${web.pod.ip}:`)));
});

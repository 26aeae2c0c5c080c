/** Security groups that keep health checks or clients out, as `tke-eni lb` names them. With packets: test/e2e/security-groups.long.test.ts. */
import test from 'ava';
import { buildLbRows } from '../../../../cli/commands/lb/build-lb-rows.ts';
import type { SecurityRule } from '../../../../sim/vpc/api/model/security-group-book.ts';
import { ServicePods } from '../../../cloud-controller-manager/services/service-pods.ts';
import { ServiceWorld } from '../../../cloud-controller-manager/services/service-world.ts';
import { PERSON, readLb } from './lb-scene.ts';

const DONE_MS = 40_000;
const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' };
/** The group of ENIs and instances here. */
const GROUP = 'sg-default0';
const OF_BALANCER = 'sg-clb00001';
const PROBES: SecurityRule = { cidr: '100.64.0.0/10', isAccepted: true };
const VPC: SecurityRule = { cidr: '10.0.0.0/16', isAccepted: true };
const CLIENT = '203.0.113.9';

async function start() {
  const world = await ServiceWorld.start();
  const pods = new ServicePods(world);
  await world.join('n1');
  await world.join('n2');
  const setRules = (group: string, rules: readonly SecurityRule[]) =>
    world.world.scene.host.model.state.setSecurityRules(group, rules);
  const problems = async (client?: string): Promise<readonly string[]> => {
    const [row] = buildLbRows(await readLb(world), client);
    return (row?.problems ?? []).filter((problem) => problem.includes('security group'));
  };
  return { world, pods, setRules, problems };
}

test('a group of ENIs that drops health checks, admits no client, or not this one, is named with the rule to add', async (t) => {
  const { world, pods, setRules, problems } = await start();
  await world.create('web', { metadata: { annotations: DIRECT } });
  await pods.run('web', 'a', { node: 'n1' });
  await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  t.deepEqual(await problems(CLIENT), [], 'open');
  setRules(GROUP, [VPC]);
  const enis = 'eni-\\w+, eni-\\w+';
  const [probes, client, ...others] = await problems(CLIENT);
  t.regex(
    probes ?? '',
    new RegExp(
      `^TCP/80: security group ${GROUP} of ${enis} does not admit the health checks from 100\\.64\\.0\\.0/10 to TCP 8080; add to ${GROUP}: inbound ACCEPT TCP:8080 from 100\\.64\\.0\\.0/10$`,
    ),
  );
  t.regex(client ?? '', new RegExp(`does not admit the client ${CLIENT} to TCP 8080; add .* from ${CLIENT}/32$`));
  t.deepEqual(others, []);
  t.is((await problems('10.0.0.200')).length, 1, 'a client of the VPC is admitted');
  setRules(GROUP, [PROBES]);
  t.regex(
    (await problems()).join(),
    new RegExp(`^TCP/80: security group ${GROUP} of ${enis} admits no client to TCP 8080; add`),
  );
  setRules(GROUP, [{ ...PROBES, protocol: 'TCP', port: 8_080 }, VPC]);
  t.deepEqual(await problems(), []);
  await world.stop();
});

test('the load balancer and Nodes are asked too; where it passes, the groups of targets are not', async (t) => {
  const { world, setRules, problems } = await start();
  const annotations = { 'service.cloud.tencent.com/security-groups': OF_BALANCER };
  await world.create('web', { metadata: { annotations }, spec: { ports: [{ port: 80, nodePort: 30_080 }] } });
  await world.advance(DONE_MS);
  t.deepEqual(await problems(CLIENT), []);
  setRules(OF_BALANCER, []);
  const { loadBalancerId } = world.balancer();
  t.deepEqual(await problems(CLIENT), [
    `TCP/80: security group ${OF_BALANCER} of ${loadBalancerId} does not admit the client ${CLIENT} to TCP 80; add to ${OF_BALANCER}: inbound ACCEPT TCP:80 from ${CLIENT}/32`,
  ]);
  setRules(OF_BALANCER, [{ cidr: `${CLIENT}/32`, isAccepted: true }]);
  setRules(GROUP, [VPC, { cidr: '0.0.0.0/0', isAccepted: false }]);
  const found = await problems(CLIENT);
  t.is(found.length, 2);
  for (const one of found)
    t.regex(
      one,
      /sg-default0 of \w+-\w+, \w+-\w+ does not admit .* to TCP 30080; .*, before its rule 2, which drops it$/,
    );
  const { loadBalancers } = world.cloud;
  const { clock } = world.world.scene;
  const task = await clock.run(loadBalancers.modify(loadBalancerId, { passesToTarget: true }, PERSON));
  await clock.run(loadBalancers.settle(task, PERSON));
  t.deepEqual(await problems(CLIENT), []);
  await world.stop();
});

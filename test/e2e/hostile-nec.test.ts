import { writeFileSync } from 'node:fs';
import test from 'ava';
import { stringify } from 'yaml';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { openAgentCaller } from '../support/agent-call.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

test("agent: a supply with a server's public network gets none of the node's traffic to it, unless --vpc-cidr has it", async (t) => {
  t.timeout(120_000);
  await buildExecutables(['tke-eni-agent']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('hostile-nec');
  const agents: AgentProcess[] = [];
  t.teardown(async () => {
    for (const agent of agents) await agent.child.stop('SIGKILL');
    await vpc.close();
    dir.close();
  });
  const { netns } = vpc.node('n1');
  await netns.ip('link', 'set', 'lo', 'up');
  const { mac } = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  const server = vpc.outside.ip;
  const network = (last: string | number) => server.replace(/\d+$/, String(last));
  writeFileSync(
    dir.join('node.yaml'),
    stringify({
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name: 'n1' },
      status: {
        eniInfos: [
          {
            ...{ eniID: 'eni-1', mac, state: 'Attached', subnetCIDR: network('0/24') },
            ...{ primaryIP: network(250), gateway: network(251) },
            addresses: [{ ip: server, assignmentID: 'a', state: 'Assigned' }],
          },
        ],
      },
    }),
  );
  const wayTo = async () => (await netns.ipJson('route', 'get', server))[0]?.['dev'];
  const pod = await createPodNetns(`${vpc.prefix}pod`);
  const sandbox = { containerId: 'c1', ifName: 'eth0', netns: pod.path, podNamespace: 'default', podName: 'p1' };
  const add = async (flags: Readonly<Record<string, string>>, says: RegExp) => {
    const agent = await startAgent({
      netns,
      dir: dir.path,
      until: 'listening',
      flags: { 'add-wait': '1s', 'force-reuse-after': '1s', ...flags },
    });
    agents.push(agent);
    await waitUntil(() => says.test(agent.logs()), { what: String(says), explain: agent.logs });
    const caller = openAgentCaller(agent.socketPath);
    const { error } = await caller.call('add', { plugin: 1, sandbox, network: 'net' });
    caller.close();
    const way = await wayTo();
    await agent.stop();
    return { isGiven: error === undefined, way };
  };
  const before = await wayTo();
  t.truthy(before);
  const refused = /refused: its subnet [0-9.]+\/24 is outside the VPC/;
  t.deepEqual(await add({}, refused), { isGiven: false, way: before });
  t.like(await add({ 'vpc-cidr': network('0/24') }, /serving/), { isGiven: true });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { KUBERNETES_FOLDER, objectsOf, strings } from '../conf/read-manifests.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { openAgentCaller } from '../support/agent-call.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** The capabilities that the manifest asks for, as setpriv(1) spells them. */
function grantedCapabilities(): readonly string[] {
  const path = join(KUBERNETES_FOLDER, 'components/agent-least-privilege/daemonset.yaml');
  const [patch] = objectsOf(readFileSync(path, 'utf8'));
  const container = at(patch, 'spec', 'template', 'spec', 'containers', 0);
  return strings(at(container, 'securityContext', 'capabilities', 'add')).map((name) => name.toLowerCase());
}

/**
 * A command line that runs the rest of it as a container without `privileged` does: a PID namespace and mounts of the node
 * outside, /proc/sys read-only inside, these capabilities and no way to more.
 */
function containerWith(capabilities: readonly string[]): readonly string[] {
  const bounds = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  const seal = 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys';
  const inside = `${seal} && exec setpriv --no-new-privs --inh-caps=-all --bounding-set=${bounds} "$@"`;
  // The shell has another command to run, so it stays: the first process of the node.
  const outside = `unshare --mount --propagation slave sh -c '${inside}' container "$@"; exit $?`;
  const node = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'slave'];
  return [...node, 'sh', '-c', outside, 'node'];
}

async function openNode() {
  await buildExecutables(['tke-eni-agent']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('least');
  const agents: AgentProcess[] = [];
  const { netns } = vpc.node('n1');
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  await vpc.assignIps('eni-1', 2);
  vpc.writeSupply('n1', dir.join('node.yaml'));
  return {
    vpc,
    eni,
    netns,
    start: async (
      capabilities: readonly string[],
      more: Readonly<Record<string, string>> = {},
    ): Promise<AgentProcess> => {
      // In the host's mounts as the agent sees them: its own are another's.
      const flags = { 'host-root': '/proc/1/root', ...more };
      const wrap = containerWith(capabilities);
      const agent = await startAgent({ netns, dir: dir.path, wrap, flags, until: 'started' });
      agents.push(agent);
      return agent;
    },
    close: async () => {
      for (const agent of agents) await agent.child.stop('SIGKILL');
      await vpc.close();
      dir.close();
    },
  };
}

test('agent: serves with the capabilities of agent-least-privilege and /proc/sys read-only', async (t) => {
  const { vpc, eni, netns, start, close } = await openNode();
  try {
    const agent = await start(grantedCapabilities(), { 'fast-path': 'bpf' });
    await agent.awaitUntil('ready', 60_000);
    const { ifname } = eni;
    t.regex(await netns.run(['tc', 'filter', 'show', 'dev', ifname, 'ingress']), /tke_fast/, agent.logs());
    t.is((await netns.run(['cat', '/proc/sys/net/ipv4/ip_forward'])).trim(), '1');
    const caller = openAgentCaller(agent.socketPath);
    const pod = await createPodNetns(`${vpc.prefix}pod`);
    const sandbox = { containerId: 'c1', ifName: 'eth0', netns: pod.path, podNamespace: 'default', podName: 'p1' };
    const added = await caller.call('add', { plugin: 1, sandbox, network: 'net' });
    t.is(added.error, undefined, agent.logs());
    t.true(await pod.ping(vpc.outside.ip));
    const link = added.attachment?.interfaces[0]?.name ?? '';
    t.is((await netns.run(['cat', `/proc/sys/net/ipv4/conf/${link}/rp_filter`])).trim(), '1');
    t.is((await caller.call('del', { plugin: 1, sandbox, network: 'net' })).error, undefined, agent.logs());
    t.false((await netns.ip('link')).includes(link));
    t.notRegex(agent.logs(), /"level":"(warn|error)"/);
    caller.close();
  } finally {
    await close();
  }
});

for (const missing of grantedCapabilities()) {
  test(`agent: is not ready, or wires no Pod, without ${missing}: the capability is needed`, async (t) => {
    const { vpc, start, close } = await openNode();
    try {
      const agent = await start(grantedCapabilities().filter((name) => name !== missing));
      const serves = async (): Promise<boolean> => {
        await agent.awaitUntil('ready', 8_000);
        const caller = openAgentCaller(agent.socketPath);
        const pod = await createPodNetns(`${vpc.prefix}pod`);
        const sandbox = { containerId: 'c1', ifName: 'eth0', netns: pod.path, podNamespace: 'default', podName: 'p1' };
        const { error } = await caller.call('add', { plugin: 1, sandbox, network: 'net' });
        caller.close();
        return error === undefined;
      };
      t.false(await serves().catch(() => false));
    } finally {
      await close();
    }
  });
}

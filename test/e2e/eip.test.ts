import test from 'ava';
import type { KubeObject } from '../../kube/kube-client.ts';
import { EIP_CLAIMS, PODS } from '../../kube/resource-types.ts';
import type { Child } from '../../sim/support/child.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { createSystem, type System } from '../system/system.ts';
import { askWho } from './packets/ask.ts';
import { startWhoServers } from './packets/serve.ts';

// EIPs with all processes and real packets: a Pod is reached at its public address and goes out with it.

const ATTRIBUTES = 'tke.cloud.tencent.com/eip-attributes';
const PUBLIC_IP = 'tke.cloud.tencent.com/eip-public-ip';
const WHO_PORT = 8080;

const annotationsOf = async (system: System, name: string) =>
  (await system.cluster.admin.get(PODS, { namespace: 'default', name }))?.metadata.annotations ?? {};

const claimOf = (system: System, name: string): Promise<KubeObject | undefined> =>
  system.cluster.admin.get(EIP_CLAIMS, { namespace: 'default', name });

/** The public address of a Pod, once it is bound and told. */
const publicIpOf = (system: System, name: string): Promise<string> =>
  waitUntil(async () => (await annotationsOf(system, name))[PUBLIC_IP], {
    what: `EIP of ${name}`,
    timeoutMs: 30_000,
    explain: () => system.logs().slice(-3_000),
  });

/** Says who answers at an address, and which address the question came from: `outside 198.51.100.2`; '' for nobody. */
const ask = (from: NetnsView, protocol: 'tcp' | 'udp', host: string): Promise<string> =>
  askWho(from, protocol, host, WHO_PORT);

for (const egress of partOf(['eni', 'node'] as const, (one) => one === 'node')) {
  test.serial(`EIP: a Pod is reached at it and goes out with it, with --egress=${egress}`, async (t) => {
    t.timeout(180_000);
    const agentFlags = { egress, 'vpc-cidr': '10.0.0.0/16' };
    const system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], ipamds: 1, agentFlags });
    const servers: Child[] = [];
    try {
      const { outside } = system.cloud.vpc;
      const node = system.node('n1');
      await node.awaitReady();
      const nec = await system.awaitNec('n1', 'a number of EIPs', (one) => one.status?.maxEIPs !== undefined);
      t.is(nec.status?.maxEIPs, 1, 'four cores bind two EIPs, one of them is for the node');
      servers.push(await startWhoServers(WHO_PORT, [{ netns: outside.netns, name: 'outside' }]));

      const plain = await node.runPod('plain');
      const pod = await node.runPod('public', { marks: { annotations: { [ATTRIBUTES]: '{"Bandwidth":10}' } } });
      servers.push(await startWhoServers(WHO_PORT, [{ netns: pod.sandbox.netns, name: 'public' }]));
      const eip = await publicIpOf(system, 'public');
      t.regex(eip, /^198\.51\.100\./);

      const primary = system.cloud.vpc.node('n1').primary.primaryIp;
      for (const protocol of ['tcp', 'udp'] as const) {
        t.is(await ask(outside.netns, protocol, eip), `public ${outside.ip}`, 'from outside, by its public address');
        t.is(await ask(pod.sandbox.netns, protocol, outside.ip), `outside ${eip}`, 'out with its public address');
        const other = egress === 'node' ? primary : plain.ip;
        t.is(await ask(plain.sandbox.netns, protocol, outside.ip), `outside ${other}`, 'another Pod has none of it');
      }
      t.true(await system.node('n1').scene.netns.ping(pod.ip), 'its own address serves as before');

      // The node has one place for an EIP.
      await node.runPod('late', { marks: { annotations: { [ATTRIBUTES]: '' } } });
      const late = await waitUntil(
        async () => {
          const claim = (await claimOf(system, 'late')) as { status?: { message?: string } } | undefined;
          return claim?.status?.message?.includes('may have 1 EIPs') === true ? claim : undefined;
        },
        { what: 'a word on the limit' },
      );
      t.truthy(late);
      await node.removePod('public');
      const second = await waitUntil(
        async () => {
          const told = (await annotationsOf(system, 'late'))[PUBLIC_IP];
          return told;
        },
        { what: 'the place for the next one', timeoutMs: 60_000, explain: () => system.logs().slice(-3_000) },
      );
      t.not(second, eip, 'the first was released');
      t.is(await ask(outside.netns, 'tcp', eip), '', 'nobody answers at an address that is released');

      await node.removePod('late');
      await waitUntil(async () => (await claimOf(system, 'late')) === undefined, { what: 'the end of the claim' });
      t.is(system.cloud.host.model.state.eips.size, 0, 'none is left in the cloud');
      const nat = await system.cloud.vpc.router.nftJson('map', 'ip', 'eip', 'inwards');
      t.false(JSON.stringify(nat ?? '').includes('"elem"'), 'none is left in the router');
      await node.removePod('plain');
      t.deepEqual(await auditThreeWays(system), []);
    } finally {
      await Promise.all(servers.map((server) => server.stop('SIGTERM', 1_000)));
      await system.close();
    }
  });
}

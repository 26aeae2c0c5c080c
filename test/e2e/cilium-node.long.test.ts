import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { KubeObject } from '../../kube/kube-client.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { recordOf } from '../../runtime/json.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { CILIUM_NODE_DEFINITION } from '../support/cilium-node-definition.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openDoor } from '../system/door.ts';
import { runCli } from './support/run-cli.ts';
import { SceneNode } from './support/scene-node.ts';

// The walk through IPAM mode crd as Cilium's documentation has it, by hand: no ipamd, no operator.

const WAITS = /Waiting for initial IP to become available in 'k8s1' custom resource/;
const IPS = ['192.168.1.1', '192.168.1.2', '192.168.1.3', '192.168.1.4'] as const;

async function openScene() {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent', 'tke-eni']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-1', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'k8s1', primarySubnet: 'subnet-1' }],
  });
  const folder = createTempDir('cilium-node');
  const server = await startKubeApi();
  const kube = connectInProcess(server.api, { clock: systemClock }).client({ userAgent: 'kubectl' });
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION);
  const door = openDoor(vpc.node('k8s1').netns, 6443, server.accept);
  const dir = folder.join('k8s1');
  mkdirSync(dir);
  const [kubeconfig, tokenFile] = [join(dir, 'kubeconfig'), join(dir, 'token')];
  writeFileSync(tokenFile, 'none');
  writeFileSync(kubeconfig, renderKubeconfig({ url: `http://${door.address}`, tokenFile }));
  const node = new SceneNode({
    ...{ vpc, dir, name: 'k8s1', ruleMode: 'compact', enis: [], supplyFile: 'none' },
    flags: {
      ...{ 'node-name': 'k8s1', 'supply-source': 'cilium-node', 'reserve-node-addresses': true, kubeconfig },
      ...{ 'cilium-node-update-rate': '1s', 'gc-interval': '1h', 'ip-cooldown': '1s' },
    },
  });
  const patch = async (part: 'spec' | 'status', ipam: object): Promise<void> => {
    const change = { kind: 'merge', body: { [part]: { ipam } } } as const;
    await kube.patch(CILIUM_NODES, { name: 'k8s1' }, part === 'status' ? { ...change, subresource: part } : change);
  };
  const ipam = async (part: 'spec' | 'status'): Promise<Readonly<Record<string, unknown>>> =>
    recordOf(recordOf((await kube.get(CILIUM_NODES, { name: 'k8s1' }))?.[part])['ipam']);
  return {
    ...{ vpc, kube, node, patch, ipam },
    close: async () => {
      await node.killAgent();
      door.close();
      await server.close();
      await vpc.close();
      folder.close();
    },
  };
}

test.serial('cilium-node: waits for its addresses, serves them, and gives back what is free alone', async (t) => {
  const scene = await openScene();
  const { kube, node, patch, ipam } = scene;
  try {
    const agent = await node.startAgent({ until: 'started' });
    const timesWaited = (): number => agent.logs().split('Waiting for initial IP').length - 1;
    await waitUntil(async () => timesWaited() >= 2, { what: 'it waits for the object', timeoutMs: 30_000 });
    await kube.create(CILIUM_NODES, {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNode',
      metadata: { name: 'k8s1' },
      spec: { ipam: { pool: { [IPS[0]]: {} } } },
    } as KubeObject);
    const before = timesWaited();
    await waitUntil(async () => timesWaited() > before + 1, { what: 'it waits at one address', timeoutMs: 30_000 });
    t.regex(agent.logs(), WAITS);
    const status = await node.call('STATUS', undefined, { conf: node.conf({ cniVersion: '1.1.0' }) });
    t.not(status.exitCode, 0, 'not ready');
    t.regex(status.stdout, WAITS);

    await patch('spec', { pool: Object.fromEntries(IPS.map((ip) => [ip, {}])) });
    await agent.awaitUntil('ready');
    const used = async () => recordOf((await ipam('status'))['used']);
    await waitUntil(async () => Object.keys(await used()).length === 2, { what: 'router and health are shown' });
    t.deepEqual(await used(), { [IPS[0]]: { owner: 'router' }, [IPS[1]]: { owner: 'health' } });
    const page = await runCli({ netns: node.netns, ...agent }, 'status', '--all-addresses');
    t.regex(page.stdout, /^IPAM:\s+IPv4: 2\/4 allocated/m);
    t.true(page.stdout.includes(`Allocated addresses:\n  ${IPS[0]} (router)\n  ${IPS[1]} (health)\n`), page.stdout);

    const pod = await node.addPod({ name: 'web' });
    t.true([IPS[2], IPS[3]].includes(pod.ip as never), pod.ip);
    t.true(await node.netns.ping(pod.ip), 'the node reaches the Pod');
    const diff = await runCli({ netns: node.netns, ...agent }, 'diff');
    t.is(diff.code, 0, diff.stdout);
    t.true(await pod.netns.ping(node.vpc.node('k8s1').primary.primaryIp), 'the Pod reaches the node');
    await waitUntil(async () => recordOf((await used())[pod.ip])['owner'] === 'default/web', { what: 'web is shown' });

    // Taken out of the pool while it is in use: it stays, also after a restart.
    const free = pod.ip === IPS[2] ? IPS[3] : IPS[2];
    await patch('spec', { pool: { [pod.ip]: null } });
    await node.killAgent();
    await node.startAgent();
    t.true(await node.netns.ping(pod.ip));
    const other = await node.addPod({ name: 'other' });
    t.is(other.ip, free);
    t.true(await other.netns.ping(pod.ip), 'Pods reach each other');
    await patch('spec', { pool: { [pod.ip]: {} } });

    // The release by hand.
    const releases = async () => recordOf((await ipam('status'))['release-ips']);
    const mark = (ip: string) => patch('status', { 'release-ips': { [ip]: 'marked-for-release' } });
    await mark(pod.ip);
    await waitUntil(async () => (await releases())[pod.ip] === 'do-not-release', { what: 'in use: refused' });
    const gone = await node.call('DEL', other);
    t.is(gone.exitCode, 0, gone.stdout);
    await waitUntil(
      async () => {
        await mark(free);
        await waitUntil(async () => (await releases())[free] !== 'marked-for-release', { what: 'an answer' });
        return (await releases())[free] === 'ready-for-release';
      },
      { what: 'given up after its cooldown', timeoutMs: 30_000 },
    );
    await node.killAgent();
    await node.startAgent();
    const refused = await node.call('ADD', await node.newPod({ name: 'late' }));
    t.is(refused.exitCode, 1, 'what was given up is given to nobody');
    await patch('spec', { pool: { [free]: null } });
    await patch('status', { 'release-ips': { [free]: 'released' } });
    await waitUntil(async () => !((await releases())[free] === 'released'), { what: 'the entry is dropped' });
    t.true(await node.netns.ping(pod.ip), 'the Pod did not notice');
  } finally {
    await scene.close();
  }
});

import test from 'ava';
import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import type { WebPod } from '../system/balanced/web-pod.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// Upstream's cases of externalTrafficPolicy Local, with packets: test/cloud-controller-manager/services/upstream-cases.ts.

const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
const LOCAL = { externalTrafficPolicy: 'Local' } as const;
const REQUESTS = 24;

let system: System;
let cluster: BalancedSystem;
/** A machine of the VPC that is no node of the cluster. */
let client: Parameters<BalancedSystem['awaitAnswer']>[0];
let clientIp: string;
let vip: string;
const webs = new Map<string, WebPod>();

test.before(async (t) => {
  t.timeout(400_000);
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }, { name: 'client' }],
    joinsAll: false,
    ipamds: 1,
  });
  const nodes = [system.node('n1'), system.node('n2')];
  await Promise.all(nodes.map(({ name }) => system.join(name)));
  cluster = await balanceSystem(system, nodes);
  const { netns, primary } = system.cloud.vpc.node('client');
  [client, clientIp] = [netns, primary.primaryIp];
  await Promise.all(nodes.map((node) => node.awaitReady()));
  vip = await cluster.balance({ name: 'web', annotations: INTERNAL, spec: LOCAL });
});
test.after.always(() => cluster?.close() ?? system?.close());

async function run(name: string, node: string, app: string): Promise<WebPod> {
  const annotations = { [POD_ANNOTATION.networks]: 'tke-route-eni' };
  const marks = { labels: { app }, annotations, resources: [ENI_IP_RESOURCE] };
  const web = await cluster.serve(await system.node(node).runPod(name, { marks }));
  webs.set(name, web);
  return web;
}

async function end(name: string, node: string): Promise<void> {
  await webs.get(name)?.server.stop();
  await system.node(node).removePod(name);
}

/** The Pods that answer so many requests, each by a connection of its own. */
async function answering(): Promise<readonly string[]> {
  const argv = ['curl', '--silent', '--show-error', '--max-time', '20', `http://${vip}/`];
  const pages: string[] = [];
  for (let index = 0; index < REQUESTS; index++) pages.push(await client.run(argv));
  return [...new Set(pages.map((page) => page.split(' ')[0] ?? ''))].toSorted();
}

async function awaitAnswering(...names: readonly string[]): Promise<void> {
  const isDone = async (): Promise<boolean> => (await answering().catch(() => [])).join() === names.join();
  await waitUntil(isDone, {
    what: `answers of ${names.join(', ')} alone`,
    timeoutMs: 120_000,
    everyMs: 500,
    explain: () => `${cluster.targets().join('\n')}\n${cluster.logs()}`,
  });
}

test.serial('the policy Local: a Pod sees the address of the client', async (t) => {
  t.timeout(180_000);
  const web = await run('a', 'n1', 'web');
  await awaitAnswering('a');
  t.deepEqual([...new Set(web.clients())], [clientIp]);
});

test.serial('the policy Local: each Node with a Pod of the Service gets connections', async (t) => {
  t.timeout(180_000);
  const web = await run('b', 'n2', 'web');
  await awaitAnswering('a', 'b');
  t.deepEqual([...new Set(web.clients())], [clientIp]);
  t.is(cluster.targets().length, 2);
});

test.serial('the policy Local: only a Node with a Pod of the Service gets connections', async (t) => {
  t.timeout(180_000);
  await end('a', 'n1');
  await awaitAnswering('b');
  t.is(
    cluster.targets().filter((target) => target.endsWith(' 10')).length,
    2,
    'the health check leaves the other one out',
  );
  t.deepEqual(await answering(), ['b']);
});

test.serial('the policy Local: a Pod that asks the load balancer is seen by its own address', async (t) => {
  t.timeout(180_000);
  const asking = await run('asking', 'n1', 'other');
  const { netns } = asking.pod.sandbox;
  await cluster.awaitAnswer(netns, vip);
  t.true(webs.get('b')?.clients().includes(asking.pod.ip));
});

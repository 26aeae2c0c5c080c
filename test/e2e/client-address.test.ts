import test from 'ava';
import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import { isObject, type NetnsView } from '../support/netns.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { Deployment } from '../system/balanced/deployment.ts';
import { startLoad } from '../system/balanced/load.ts';
import { StatefulSet } from '../system/stateful-set.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';

// The article of seed 004, on a cluster with both networks: which address the log of a Pod has for its client.

const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
const DIRECT = { ...INTERNAL, 'service.cloud.tencent.com/direct-access': 'true' } as const;
const ON_ENI = { [POD_ANNOTATION.networks]: 'tke-route-eni' } as const;

let system: System;
let cluster: BalancedSystem;
/** A node of another cluster in the VPC. */
let client: { readonly netns: NetnsView; readonly ip: string };

test.before(async (t) => {
  t.timeout(240_000);
  const hybrid = { 'default-network': 'tke-bridge' } as const;
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'other' }],
    joinsAll: false,
    ipamds: 1,
    agentFlags: hybrid,
    ipamdFlags: {
      ...{ ...hybrid, 'enable-static-ip': 'true', 'allocate-node-cidrs': 'true', 'gr-routes': 'ipamd' },
      ...{ 'cluster-cidr': '192.168.0.0/20', 'node-cidr-mask-size': '26' },
    },
  });
  await system.join('n1');
  cluster = await balanceSystem(system, [system.node('n1')]);
  const { netns, primary } = system.cloud.vpc.node('other');
  client = { netns, ip: primary.primaryIp };
  await system.node('n1').awaitReady();
});
test.after.always(() => cluster?.close() ?? system?.close());

/** The body of the page. */
const page = (host: string): Promise<string> =>
  client.netns.run(['curl', '--silent', '--show-error', '--max-time', '20', `http://${host}/`]);

/** The address of the node's bridge. */
async function bridgeAddress(): Promise<unknown> {
  const [link] = await system.node('n1').scene.netns.ipJson('addr', 'show', 'dev', BRIDGE_NAME);
  const infos = Array.isArray(link?.['addr_info']) ? link['addr_info'].filter(isObject) : [];
  return infos.find(({ family }) => family === 'inet')?.['local'];
}

test.serial('behind a node port the log of a Pod on the bridge has the address of cbr0', async (t) => {
  t.timeout(120_000);
  const marks = { labels: { app: 'nginx' }, resources: [] };
  const web = await cluster.serve(await system.node('n1').runPod('nginx-1', { marks }));
  const vip = await cluster.balance({ name: 'nginx', annotations: INTERNAL });
  await cluster.awaitAnswer(client.netns, vip);
  t.is(await page(vip), `nginx-1 ${await bridgeAddress()}\n`);
  t.deepEqual([...new Set(web.clients())], [await bridgeAddress()]);
});

test.serial(
  'the Deployment of the article behind a direct Service: its log has the address of the client',
  async (t) => {
    t.timeout(120_000);
    const labels = { 'k8s-app': 'nginx-deploy', 'qcloud-app': 'nginx-deploy' };
    const marks = { labels, annotations: ON_ENI, resources: [ENI_IP_RESOURCE] };
    const web = await cluster.serve(await system.node('n1').runPod('nginx-deploy-1', { marks }));
    const spec = { selector: labels };
    const vip = await cluster.balance({ name: 'nginx-deploy', annotations: DIRECT, spec });
    await cluster.awaitAnswer(client.netns, vip);
    t.is(await page(vip), `nginx-deploy-1 ${client.ip}\n`);
    t.deepEqual([...new Set(web.clients())], [client.ip]);
    t.true(cluster.targets().includes(`TCP/80 ${web.pod.ip}:80 10`), cluster.targets().join());
  },
);

test.serial(
  'a StatefulSet keeps its address: by the Pod and by its direct Service, also after its Pod was deleted',
  async (t) => {
    t.timeout(120_000);
    const set = new StatefulSet(system, { name: 'nginx-set', annotations: ON_ENI });
    const before = await cluster.serve(await set.start(0, 'n1'));
    const vip = await cluster.balance({ name: 'nginx-set', annotations: DIRECT });
    await cluster.awaitAnswer(client.netns, vip);
    const wanted = `nginx-set-0 ${client.ip}\n`;
    t.deepEqual([await page(before.pod.ip), await page(vip)], [wanted, wanted]);
    await before.server.stop();
    const after = await cluster.serve(await set.restart(0));
    t.is(after.pod.ip, before.pod.ip);
    await cluster.awaitAnswer(client.netns, vip);
    t.deepEqual([await page(after.pod.ip), await page(vip)], [wanted, wanted]);
    t.deepEqual([...new Set(after.clients())], [client.ip]);
  },
);

// The complete update of 20 Pods: rolling-update.long.test.ts.
test.serial('a Pod is replaced behind a direct Service: no request fails', async (t) => {
  t.timeout(180_000);
  const web = new Deployment(cluster, [system.node('n1')], 'rolling');
  const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80 }));
  const [host, names] = await Promise.all([
    cluster.balance({ name: 'rolling', annotations: DIRECT, spec: { ports } }),
    web.start(2, 'exit'),
  ]);
  await web.awaitReady(names);
  const ways = (['TCP', 'UDP'] as const).map((protocol) => ({ host, port: 80, protocol, count: 3 }));
  const load = startLoad(
    client.netns,
    ways.flatMap((way) => [true, false].map((isKept) => ({ ...way, isKept }))),
    200,
  );
  await web.replace(1, 'exit', { preStopMs: 1_500, graceMs: 1_000, isAfterDrain: true });
  const { failures, answers } = await load.stop();
  t.deepEqual(failures, []);
  t.is(Object.keys(answers).length, 3);
});

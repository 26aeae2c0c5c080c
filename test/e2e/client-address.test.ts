import { writeFileSync } from 'node:fs';
import test from 'ava';
import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { BRIDGE_NAME } from '../../dataplane/numbers.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { isObject, type NetnsView } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { type BalancedSystem, balanceSystem } from '../system/balanced/balanced-system.ts';
import { Deployment } from '../system/balanced/deployment.ts';
import { startLoad } from '../system/balanced/load.ts';
import { openDoor } from '../system/door.ts';
import { StatefulSet } from '../system/stateful-set.ts';
import { createSystem, type System } from '../system/system.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';
import { runCli } from './support/run-cli.ts';

// The article of seed 004, on a cluster with both networks: which address the log of a Pod has for its client.

const INTERNAL = { 'service.kubernetes.io/qcloud-loadbalancer-internal-subnetid': POD_SUBNET.subnetId } as const;
const DIRECT = { ...INTERNAL, 'service.cloud.tencent.com/direct-access': 'true' } as const;
const INGRESS = {
  'kubernetes.io/ingress.subnetId': POD_SUBNET.subnetId,
  'ingress.cloud.tencent.com/direct-access': 'true',
} as const;
const ON_ENI = { [POD_ANNOTATION.networks]: 'tke-route-eni' } as const;

let system: System;
let cluster: BalancedSystem;
/** A node of another cluster in the VPC. */
let client: { readonly netns: NetnsView; readonly ip: string };

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
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
  const flags = { ingress: 'clb', 'ingress-without-class': 'true' };
  cluster = await balanceSystem(system, [system.node('n1')], { flags });
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

    // The article's Ingress, without a class: a path for all hosts, the Pod itself is the target.
    const backend = { service: { name: 'nginx-deploy', port: { number: 80 } } };
    const paths = [{ path: '/', pathType: 'ImplementationSpecific', backend }];
    const ingress = await cluster.balanceIngress({
      ...{ name: 'nginx-deploy-ingress', annotations: INGRESS },
      spec: { rules: [{ http: { paths } }] },
    });
    await cluster.awaitAnswer(client.netns, ingress);
    t.is(client.ip, '10.0.0.3', 'the place of the article');
    t.is(await page(ingress), `nginx-deploy-1 ${ingress}\n`);
    t.is(web.forwarded().at(-1), client.ip, 'behind layer 7 the Pod learns the client by X-Forwarded-For');
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

test.serial('tke-eni explain follows a connection to the load balancer into the Pod, or names the node', async (t) => {
  t.timeout(120_000);
  const direct = await cluster.service('nginx-deploy');
  const ported = await cluster.service('nginx');
  const at = `${vipOf(direct)}:80`;
  const here = await explain('n1', at, client.ip);
  const there = await explain('other', at, client.ip);
  const byPort = await explain('n1', `${vipOf(ported)}:80`, client.ip);
  const ip = system.node('n1').pods.find(({ name }) => name === 'nginx-deploy-1')?.ip ?? '';
  t.is(here.code, 0, here.stdout + here.stderr);
  t.true(here.stdout.includes(`${client.ip} -> ${at} (TCP, Service default/nginx-deploy)\n`), here.stdout);
  t.regex(here.stdout, /ok {6}cloud {3}lb-\w+ \(INTERNAL\) takes TCP\/80 of Service default\/nginx-deploy/);
  t.true(here.stdout.includes(`target ${ip}:80, Pod default/nginx-deploy-1 on n1, weight 10, healthy`));
  t.true(here.stdout.includes(`${ip} (Pod default/nginx-deploy-1) -> ${client.ip}\n`), 'and the answer');
  t.notRegex(here.stdout, /BROKEN|unknown/);
  t.regex(there.stdout, new RegExp(`on n1: tke-eni explain ${at} --from ${client.ip}`));
  t.regex(byPort.stdout, /kube-proxy masquerades, so that the Pod sees an address of\s+this node/);
  t.regex(byPort.stdout, /on n1: tke-eni explain default\/nginx-1 --from 10\.0\.0\.\d+/);
  const unheard = await explain('n1', at.replace(':80', ':81'), client.ip);
  t.is(unheard.code, 2);
  t.regex(unheard.stderr, /does not listen at port 81[\s\S]*it listens at TCP\/80/);
});

/** Runs the packaged command in the namespace of a machine, with the rights of a person. */
async function explain(machine: string, at: string, from: string) {
  const { netns } = system.cloud.vpc.node(machine);
  const dir = createTempDir('explain-vip');
  const [kube, cloud] = [
    openDoor(netns, 7_443, system.cluster.server.accept),
    openDoor(netns, 9_443, (socket) => system.cloud.server.accept(socket)),
  ];
  try {
    const kubeconfig = dir.join('kubeconfig');
    const token = system.cluster.server.addToken(ADMIN);
    writeFileSync(kubeconfig, renderKubeconfig({ url: `http://${kube.address}`, token }));
    const { secretId, secretKey } = system.cloud.key;
    const env = { TENCENTCLOUD_SECRET_ID: secretId, TENCENTCLOUD_SECRET_KEY: secretKey, COLUMNS: '200' };
    const stateDir = machine === 'n1' ? system.node('n1').scene.agent.stateDir : dir.join('none');
    const place = { netns, stateDir, socketPath: dir.join('none.sock'), env };
    const remote = ['--kubeconfig', kubeconfig, '--region', 'ap-guangzhou', '--endpoint', `http://${cloud.address}`];
    return await runCli(place, 'explain', at, '--from', from, ...remote);
  } finally {
    kube.close();
    cloud.close();
    dir.close();
  }
}

function vipOf(service: KubeObject | undefined): string {
  const status = isObject(service?.['status']) ? service['status'] : {};
  const balancer = isObject(status['loadBalancer']) ? status['loadBalancer'] : {};
  const [first] = Array.isArray(balancer['ingress']) ? balancer['ingress'].filter(isObject) : [];
  return String(first?.['ip']);
}

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

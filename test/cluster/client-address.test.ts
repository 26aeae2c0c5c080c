import test from 'ava';
import { isInCidr } from '../../crd/ip-text.ts';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { waitUntil } from '../support/wait-until.ts';
import { POD_SUBNET } from '../system/vpc-cloud.ts';
import { auditCluster } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { CCM_COMPONENT, CLUSTER_ID } from './deploy.ts';
import { awaitPods, podManifest, podsOf, type SeenPod, statefulSetManifest } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { refusedRequests } from './refused.ts';
import { loadWebServer, WEB_SERVER_IMAGE } from './web-server-image.ts';
import {
  awaitBalanced,
  balancedService,
  clientsOf,
  DIRECT,
  INTERNAL,
  targetsOf,
  tryPage,
} from './workloads/balanced.ts';
import { blocksOf, GR_DEPLOYMENT, GR_KUBE_PROXY, GR_SERVICE_CIDR, gatewayOf } from './workloads/gr-cluster.ts';
import { nginxDeploy } from './workloads/nginx-deploy.ts';

// A cluster with both networks, and load balancers: which address the log of a Pod has for its client. The article of which
// workloads/nginx-deploy.yaml is a part, Service by Service.

const SERVER = { container: { image: WEB_SERVER_IMAGE } } as const;
/** The Pods of nginx-deploy.yaml. */
const DEPLOYED = { 'k8s-app': 'nginx-deploy', 'qcloud-app': 'nginx-deploy' } as const;

const running = clusterOfFile(
  () =>
    startRealCluster({
      // The last is a node of another cluster in the VPC: it never joins this one.
      nodes: [{ name: 'node1' }, { name: 'node2' }, { name: 'other', joins: 'later' }],
      serviceCidr: GR_SERVICE_CIDR,
      kubeProxyFlags: GR_KUBE_PROXY,
    }),
  async (cluster) => {
    await loadWebServer(cluster.dir, cluster.nodes);
    await cluster.deploy({
      ...GR_DEPLOYMENT,
      until: 'nodes',
      subnetIds: cluster.cloud.podSubnetIds,
      components: [CCM_COMPONENT, 'load-balancers'],
      ccmSettings: { clusterid: CLUSTER_ID, 'vpc-id': cluster.cloud.vpcId, 'load-balancers': 'clb' },
    });
  },
);

/** Where everything is asked from. */
function client() {
  const { netns, primary } = running().cloud.vpc.node('other');
  return { netns, ip: primary.primaryIp };
}

async function onlyPod(selector: string): Promise<SeenPod> {
  const [pod] = await awaitPods(running(), selector, 1, { timeoutMs: 120_000 });
  if (pod === undefined) throw new Error(`${selector}: no Pod`);
  return pod;
}

test.serial(
  'by a node port the log of a GlobalRoute Pod has the address of cbr0, or of the node between',
  async (t) => {
    const cluster = running();
    const { netns } = client();
    await cluster.apply(podManifest('nginx', { ...SERVER, network: '' }));
    await cluster.apply(balancedService({ name: 'nginx', selector: { app: 'nginx' }, annotations: INTERNAL }));
    const pod = await onlyPod('app=nginx');
    const vip = await awaitBalanced(cluster, 'nginx', netns);
    const block = (await blocksOf(cluster)).get(pod.node) ?? '';
    t.true(isInCidr(pod.ip, block), `${pod.ip} of ${block}`);
    const between = cluster.nodes.filter(({ name }) => name !== pod.node).map(({ ip }) => ip);
    const wanted = [gatewayOf(block), ...between].toSorted();
    // The load balancer has both nodes as targets, and takes them in turn.
    const sees = async () => {
      const page = await tryPage(netns, vip);
      if (page !== undefined) t.true(wanted.includes(page.replace('nginx ', '')), page);
      return (await clientsOf(cluster, 'nginx')).length >= wanted.length;
    };
    await waitUntil(sees, { what: 'a request by each node', timeoutMs: 60_000, everyMs: 100 });
    t.deepEqual(await clientsOf(cluster, 'nginx'), wanted);
    t.log(`client ${client().ip}, in the log: ${wanted.join(', ')}`);
  },
);

test.serial(
  'the Deployment of the article behind a direct Service: its log has the address of the client',
  async (t) => {
    const cluster = running();
    const { netns, ip } = client();
    await cluster.apply(nginxDeploy(WEB_SERVER_IMAGE));
    await cluster.apply(balancedService({ name: 'nginx-deploy', selector: DEPLOYED, annotations: DIRECT }));
    const pod = await onlyPod('k8s-app=nginx-deploy');
    t.true(isInCidr(pod.ip, POD_SUBNET.cidr), pod.ip);
    const vip = await awaitBalanced(cluster, 'nginx-deploy', netns);
    t.is(await tryPage(netns, vip), `${pod.name} ${ip}`);
    t.deepEqual(await clientsOf(cluster, pod.name), [ip]);
    t.true(targetsOf(cluster).includes(`TCP/80 ${pod.ip}:80 10`), targetsOf(cluster).join());
    t.log(`client ${ip}, in the log: ${ip}`);
  },
);

test.serial(
  'a StatefulSet keeps its address: by the Pod and by its direct Service, also after its Pod was deleted',
  async (t) => {
    const cluster = running();
    const { netns, ip } = client();
    const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never' };
    await cluster.apply(statefulSetManifest('nginx-set', 1, { ...SERVER, annotations }));
    await cluster.apply(balancedService({ name: 'nginx-set', selector: { app: 'nginx-set' }, annotations: DIRECT }));
    const before = await onlyPod('app=nginx-set');
    const vip = await awaitBalanced(cluster, 'nginx-set', netns);
    const wanted = `nginx-set-0 ${ip}`;
    t.deepEqual([await tryPage(netns, before.ip), await tryPage(netns, vip)], [wanted, wanted]);
    await cluster.kubectl('delete', 'pod', before.name);
    await waitUntil(async () => (await podsOf(cluster, 'app=nginx-set')).some(({ uid }) => uid !== before.uid), {
      what: 'another Pod of the StatefulSet',
      timeoutMs: 60_000,
      everyMs: 300,
    });
    const after = await onlyPod('app=nginx-set');
    t.not(after.uid, before.uid);
    t.is(after.ip, before.ip);
    t.is(await awaitBalanced(cluster, 'nginx-set', netns), vip);
    t.deepEqual([await tryPage(netns, after.ip), await tryPage(netns, vip)], [wanted, wanted]);
    t.deepEqual(await clientsOf(cluster, after.name), [ip]);
    t.log(`${before.uid} and ${after.uid} have ${after.ip}; client ${ip}, in the log: ${ip}`);
  },
);

test.serial('cloud, objects and kernels agree, and nothing was refused', async (t) => {
  t.deepEqual(await auditCluster(running()), []);
  t.deepEqual(refusedRequests(running()), []);
});

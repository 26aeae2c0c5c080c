import { writeFileSync } from 'node:fs';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { POD_CIDRS_CONFIG_MAP, renderPodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { SUBNETS_CONFIG_MAP } from '../../../crd/subnet-supply.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES, PODS, resourceTypeOf } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { connectInProcess } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { renderKubeconfig } from '../../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../../sim/kube-api/start-kube-api.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { CloudServer } from '../../../sim/vpc/api/http-server.ts';
import { openDoor } from '../../system/door.ts';
import { readFrozen } from '../frozen.ts';
import { type Documents, printShapes } from './agent-documents.ts';
import { type AgentStage, fileOf } from './agent-stage.ts';

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false } as const;
const KUBE_PORT = 6443;
const CLOUD_PORT = 8443;
const CLOUD = `--cloud --region ap-guangzhou --endpoint http://127.0.0.1:${CLOUD_PORT}`;
const COMMANDS = [
  ...['cluster nodes --grace 0', 'cluster kept', `cluster subnets ${CLOUD}`, `cluster enis ${CLOUD}`],
  ...[
    'cluster capacity',
    'cluster subnets --sample 0',
    `cluster leaks --sample 0 --grace 0 ${CLOUD}`,
    `diff --nec ${CLOUD}`,
  ],
];
const OBJECTS = ['nodeeniconfig-recorded', 'vpcip', 'vpcipclaim', 'vpceni', 'eipclaim'];

/** Prints the documents of a cluster that has the recorded objects and of a cloud that has other ENIs. */
export async function recordClusterDocuments(stage: AgentStage): Promise<Documents> {
  const server = await startKubeApi();
  const cloud = makeCloud();
  const key = cloud.credentials.add('AKIDfrozen', 'secret-0');
  const doors = [
    openDoor(stage.node.netns, KUBE_PORT, server.accept),
    openDoor(stage.node.netns, CLOUD_PORT, (socket) => cloud.accept(socket)),
  ];
  try {
    await fill(connectInProcess(server.api, { clock: systemClock }).client({ userAgent: 'test' }));
    const kubeconfig = fileOf(stage, 'kubeconfig');
    writeFileSync(kubeconfig, renderKubeconfig({ url: `http://127.0.0.1:${KUBE_PORT}` }));
    const env = {
      TENCENTCLOUD_SECRET_ID: key.secretId,
      TENCENTCLOUD_SECRET_KEY: key.secretKey,
      KUBECONFIG: kubeconfig,
    };
    return await printShapes(stage, COMMANDS, { env });
  } finally {
    for (const door of doors) door.close();
    await server.close();
  }
}

async function fill(kube: KubeClient): Promise<void> {
  await installKinds(kube);
  await kube.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await kube.create(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', annotations: { 'tke.cloud.tencent.com/desired-route-eni-pod-num': '4' } },
    spec: { taints: [{ key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' }] },
  });
  await kube.create(PODS, {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'cart-0', namespace: 'shop' } },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] },
    status: { phase: 'Running', podIP: '10.0.2.10', podIPs: [{ ip: '10.0.2.10' }] },
  });
  await kube.create(CONFIG_MAPS, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: POD_CIDRS_CONFIG_MAP, namespace: 'kube-system' } },
    data: renderPodCidrRecord({
      ...{
        term: 1,
        clusterCidrs: ['192.168.0.0/24'],
        serviceCidr: '',
        maskSize: 26,
        next: 1,
        taken: [0],
        owners: [],
        held: [],
      },
      blocks: { total: 4, reserved: 0, used: 1, held: 0, free: 3 },
      waiting: { count: 1, nodes: ['n1'] },
      stopped: 'another allocator',
    }),
  });
  const supply = { zone: 'ap-guangzhou-3', cidr: '10.0.2.0/24', free: 3, total: 253, held: 250, common: true };
  await kube.create(CONFIG_MAPS, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SUBNETS_CONFIG_MAP, namespace: 'kube-system' } },
    data: { 'subnet-a': JSON.stringify(supply) },
  });
  for (const name of OBJECTS) await createRecorded(kube, readFrozen(`objects/${name}`));
  const kept = readFrozen('objects/vpcip');
  await createRecorded(kube, { ...kept, metadata: { name: '10.0.2.99' }, spec: keptSpec(kept['spec']) });
}

/** An address that is kept for a name without a Pod. */
function keptSpec(spec: unknown): unknown {
  return { ...Object(spec), ip: '10.0.2.99', claimRef: { namespace: 'shop', name: 'cart-0' } };
}

/** Creates an object without what the API server gives it. */
async function createRecorded(kube: KubeClient, object: JsonObject): Promise<void> {
  const kind = RESOURCE_KINDS.find((one) => one.kind === object['kind']);
  if (kind === undefined || !isObject(object['metadata'])) throw new Error(`${object['kind']}: no such kind`);
  const { name, namespace, labels, annotations } = object['metadata'];
  // A recorded object: it has what an object has.
  await kube.create(resourceTypeOf(kind), {
    ...object,
    metadata: { name, namespace, labels, annotations },
  } as KubeObject);
}

/** One ENI that carries the tags of the cluster, and that no object has. */
function makeCloud(): CloudServer {
  const subnets = [{ subnetId: 'subnet-a', zone: 'ap-guangzhou-3', cidr: '10.0.2.0/24' }];
  const host = new CloudHost({ vpcId: 'vpc-frozen01', subnets }, systemClock, { taskMs: [1, 1] });
  const Tags = [
    { Key: 'tke-clusterId', Value: 'cls-frozen01' },
    { Key: 'tke-created-eni', Value: 'true' },
  ];
  const params = { VpcId: 'vpc-frozen01', SubnetId: 'subnet-a', NetworkInterfaceName: 'stray', Tags };
  void host.serve('vpc', 'CreateNetworkInterface', params);
  return new CloudServer(host);
}

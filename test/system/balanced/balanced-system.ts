import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { SERVICES } from '../../../kube/resource-types.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { rulesOfLoadBalancers } from '../../kube-api/seed-roles.ts';
import type { NetnsView } from '../../support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { bindRole, POD_NAMESPACE } from '../cluster.ts';
import { filesOf, type System } from '../system.ts';
import type { SystemNode, SystemPod } from '../system-node.ts';
import { CcmProcess } from './ccm-process.ts';
import { type ClusterControllers, SLICES, startClusterControllers } from './cluster-controllers.ts';
import { type NodeProxy, startNodeProxy } from './node-proxy.ts';
import { type AtEnd, serveIn, type WebPod } from './web-pod.ts';

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false } as const;
const ACCOUNT = { kind: 'ServiceAccount', name: 'tke-cloud-controller-manager', namespace: 'kube-system' };
const MORE_RIGHTS = 'tke-eni-service-more';

/** A Service of type LoadBalancer, by what tests change of it. */
type ServiceSpec = {
  readonly name: string;
  /** Label `app` of its Pods; default its name. */
  readonly app?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
};

/** What is added to a system so that Services have load balancers with packets. */
export type BalancedSystem = {
  readonly system: System;
  readonly ccms: readonly CcmProcess[];
  readonly controllers: ClusterControllers;
  /** Creates a Service with port 80, and returns the address of its load balancer. */
  balance(service: ServiceSpec): Promise<string>;
  /** The Service, as the API server has it. */
  service(name: string): Promise<KubeObject | undefined>;
  /** Waits until a host answers by HTTP: targets are bound, node ports lead to Pods. */
  awaitAnswer(from: NetnsView, host: string): Promise<void>;
  /** Targets of all listeners of the cloud: `TCP/80 10.0.0.2:30080 10`, sorted. */
  targets(): readonly string[];
  /** What the cloud controller managers wrote last. */
  logs(): string;
  /** Starts the server of a Pod, says that its containers are ready, and stops it when all is closed. */
  serve(pod: SystemPod, atEnd?: AtEnd): Promise<WebPod>;
  /** Ends all of it, and the system. */
  close(): Promise<void>;
};

/**
 * Adds the rest of a cluster to a system whose nodes have joined: replicas of the cloud controller manager with load
 * balancers, the controllers that Services depend on, and a stand-in of kube-proxy on each of these nodes. The caller closes it.
 */
export async function balanceSystem(
  system: System,
  nodes: readonly SystemNode[],
  { replicas = 1, flags = {} }: { readonly replicas?: number; readonly flags?: Readonly<Record<string, string>> } = {},
): Promise<BalancedSystem> {
  await buildExecutables(['tke-cloud-controller-manager']);
  const { admin } = system.cluster;
  await bindRole(admin, 'tke-cloud-controller-manager');
  await grantMore(system);
  const dir = join(filesOf(system.cloud.vpc.prefix), 'ccm');
  mkdirSync(dir, { recursive: true });
  const ccms: CcmProcess[] = [];
  for (let index = 0; index < replicas; index++) {
    const ccm = await CcmProcess.make(system, dir, `ccm${index}`, flags);
    ccm.start();
    ccms.push(ccm);
  }
  const controllers = await startClusterControllers(admin);
  const proxies: NodeProxy[] = [];
  for (const { name, scene } of nodes) proxies.push(await startNodeProxy(admin, name, scene.netns));
  const webs: WebPod[] = [];
  const logs = (): string => ccms.map((ccm) => ccm.logs().slice(-3_000)).join('\n');
  const service = (name: string) => admin.get(SERVICES, { namespace: POD_NAMESPACE, name });
  return {
    ...{ system, ccms, controllers, service, logs },
    balance: async ({ name, app = name, annotations = {}, spec = {} }) => {
      await admin.create(SERVICES, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: POD_NAMESPACE, annotations } },
        spec: { type: 'LoadBalancer', selector: { app }, ports: [{ port: 80 }], ...spec },
      });
      return await waitUntil(async () => ingressOf(await service(name)), {
        what: `the address of ${name}`,
        timeoutMs: 60_000,
        everyMs: 100,
        explain: logs,
      });
    },
    awaitAnswer: async (from, host) => {
      const argv = ['curl', '--silent', '--output', '/dev/null', '--max-time', '2', `http://${host}/`];
      const slices = () => JSON.stringify(system.cluster.server.objects(SLICES.plural, SLICES.group));
      const explain = () => [targetsOf(system).join('\n'), slices(), logs()].join('\n');
      const isDone = async () => (await from.tryRun(argv)).code === 0;
      await waitUntil(isDone, { what: `an answer of ${host}`, timeoutMs: 20_000, everyMs: 200, explain });
    },
    targets: () => targetsOf(system),
    serve: async (pod, atEnd) => {
      const web = await serveIn(pod, atEnd);
      webs.push(web);
      await controllers.setContainersReady(pod.name, true);
      return web;
    },
    close: async () => {
      for (const { server } of webs) await server.stop('SIGKILL');
      for (const ccm of ccms) await ccm.close();
      for (const proxy of proxies) await proxy.close();
      await controllers.close();
      await system.close();
    },
  };
}

/** Grants what the published role lacks, as the component load-balancers does. */
async function grantMore({ cluster }: System): Promise<void> {
  const rules = rulesOfLoadBalancers();
  const kind = `${RBAC.group}/${RBAC.version}`;
  await cluster.admin.create(
    { ...RBAC, plural: 'clusterroles', kind: 'ClusterRole' },
    { apiVersion: kind, kind: 'ClusterRole', metadata: { name: MORE_RIGHTS }, rules },
  );
  await cluster.admin.create(
    { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
    {
      ...{ apiVersion: kind, kind: 'ClusterRoleBinding', metadata: { name: MORE_RIGHTS }, subjects: [ACCOUNT] },
      roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: MORE_RIGHTS },
    },
  );
}

function ingressOf(service: KubeObject | undefined): string | undefined {
  const status = service?.['status'] as
    | { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } }
    | undefined;
  return status?.loadBalancer?.ingress?.[0]?.ip;
}

function targetsOf({ cloud }: System): readonly string[] {
  const { model } = cloud.host;
  const listeners = [...model.state.clb.balancers().values()].flatMap((one) => [...one.listeners.values()]);
  return listeners
    .flatMap(({ protocol, port, targets }) =>
      [...targets.values()].map((target) => `${protocol}/${port} ${target.ip}:${target.port} ${target.weight}`),
    )
    .toSorted();
}

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { INGRESSES, SERVICES } from '../../../kube/resource-types.ts';
import { rulesOfIngresses, rulesOfLoadBalancers } from '../../../sim/kube-api/seed-roles.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { bindRole, POD_NAMESPACE } from '../cluster.ts';
import { filesOf } from '../system.ts';
import { CcmProcess, type Unbalanced } from './ccm-process.ts';
import { type ClusterControllers, startClusterControllers } from './cluster-controllers.ts';
import { type NodeProxy, startNodeProxy } from './node-proxy.ts';

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false } as const;
const ACCOUNT = { kind: 'ServiceAccount', name: 'tke-cloud-controller-manager', namespace: 'kube-system' };
const MORE_RIGHTS = 'tke-eni-service-more';

/** A Service of type LoadBalancer, by what tests change of it. */
export type ServiceSpec = {
  readonly name: string;
  /** Label `app` of its Pods; default its name. */
  readonly app?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
};

/** An Ingress, by what tests say of it. */
type IngressInput = {
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec: object;
};

/** What is added to a cluster so that Services have load balancers with packets. */
export type BalancedCluster = {
  readonly ccms: readonly CcmProcess[];
  readonly controllers: ClusterControllers;
  /** Creates a Service with port 80. */
  createService(service: ServiceSpec): Promise<void>;
  /** Waits for the load balancer of a Service, and returns its address. */
  awaitAddress(name: string): Promise<string>;
  /** Creates an Ingress, and returns the address of its load balancer. Needs the flag `ingress`. */
  balanceIngress(ingress: IngressInput): Promise<string>;
  /** The Service, as the API server has it. */
  service(name: string): Promise<KubeObject | undefined>;
  /** Targets of all listeners of the cloud: `TCP/80 10.0.0.2:30080 10`, sorted. */
  targets(): readonly string[];
  /** What the cloud controller managers wrote last. */
  logs(): string;
  /** Ends all of it. Load balancers and rules of the nodes stay. */
  close(): Promise<void>;
};

/**
 * Starts replicas of the cloud controller manager with load balancers, the controllers that Services depend on, and a
 * stand-in of kube-proxy in each of these namespaces of nodes. The caller closes it.
 */
export async function startBalancing(
  unbalanced: Unbalanced,
  nodes: readonly { readonly name: string; readonly netns: NetnsView }[],
  { replicas = 1, flags = {} }: { readonly replicas?: number; readonly flags?: Readonly<Record<string, string>> } = {},
): Promise<BalancedCluster> {
  await buildExecutables(['tke-cloud-controller-manager']);
  const { admin } = unbalanced.cluster;
  await bindRole(admin, 'tke-cloud-controller-manager');
  await grantMore(unbalanced, flags['ingress'] === 'clb');
  const dir = join(filesOf(unbalanced.cloud.vpc.prefix), 'ccm');
  mkdirSync(dir, { recursive: true });
  const ccms: CcmProcess[] = [];
  const proxies: NodeProxy[] = [];
  let controllers: ClusterControllers | undefined;
  const close = async (): Promise<void> => {
    for (const ccm of ccms) await ccm.close();
    for (const proxy of proxies) await proxy.close();
    await controllers?.close();
  };
  const logs = (): string => ccms.map((ccm) => ccm.logs().slice(-3_000)).join('\n');
  const service = (name: string) => admin.get(SERVICES, { namespace: POD_NAMESPACE, name });
  try {
    for (let index = 0; index < replicas; index++) {
      const ccm = await CcmProcess.make(unbalanced, dir, `ccm${index}`, flags);
      ccms.push(ccm);
      ccm.start();
    }
    controllers = await startClusterControllers(admin);
    for (const { name, netns } of nodes) proxies.push(await startNodeProxy(admin, name, netns));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...{ ccms, controllers, service, logs, close },
    createService: async ({ name, app = name, annotations = {}, spec = {} }) => {
      await admin.create(SERVICES, {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: POD_NAMESPACE, annotations } },
        spec: { type: 'LoadBalancer', selector: { app }, ports: [{ port: 80 }], ...spec },
      });
    },
    awaitAddress: (name) =>
      waitUntil(async () => ingressOf(await service(name)), {
        what: `the address of ${name}`,
        timeoutMs: 60_000,
        everyMs: 100,
        explain: logs,
      }),
    balanceIngress: async ({ name, annotations = {}, spec }) => {
      const metadata = { name, namespace: POD_NAMESPACE, annotations };
      await admin.create(INGRESSES, { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec });
      const find = async () => ingressOf(await admin.get(INGRESSES, { namespace: POD_NAMESPACE, name }));
      return await waitUntil(find, {
        what: `the address of the Ingress ${name}`,
        timeoutMs: 60_000,
        everyMs: 100,
        explain: logs,
      });
    },
    targets: () => targetsOf(unbalanced),
  };
}

/** Grants what the published role lacks, as the component load-balancers does, and the component ingresses. */
async function grantMore({ cluster }: Unbalanced, hasIngresses: boolean): Promise<void> {
  const rules = [...rulesOfLoadBalancers(), ...(hasIngresses ? rulesOfIngresses() : [])];
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

function ingressOf(owner: KubeObject | undefined): string | undefined {
  const status = owner?.['status'] as
    | { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } }
    | undefined;
  return status?.loadBalancer?.ingress?.[0]?.ip;
}

function targetsOf({ cloud }: Unbalanced): readonly string[] {
  const { model } = cloud.host;
  const listeners = [...model.state.clb.balancers().values()].flatMap((one) => [...one.listeners.values()]);
  return listeners
    .flatMap(({ protocol, port, targets }) =>
      [...targets.values()].map((target) => `${protocol}/${port} ${target.ip}:${target.port} ${target.weight}`),
    )
    .toSorted();
}

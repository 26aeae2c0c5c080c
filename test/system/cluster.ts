import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENI_IP_RESOURCE, NODE_INSTANCE_LABEL } from '../../crd/names.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../kube/resource-types.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { systemClock } from '../../runtime/clock.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { connectInProcess } from '../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { clusterRolesOf, type SeedRole } from '../../sim/kube-api/seed-roles.ts';
import { type KubeApi, startKubeApi } from '../../sim/kube-api/start-kube-api.ts';

/** The API server of a system, with the rights that the components run with. */
export type Cluster = {
  readonly server: KubeApi;
  /** Past all faults of connections: what people and the kubelet do. */
  readonly admin: KubeClient;
  /** Makes a kubeconfig for a component, with a token of its own ServiceAccount in a file; `rotate` makes another. */
  kubeconfig(role: SeedRole, dir: string, address: string): { readonly path: string; readonly rotate: () => void };
  /** Makes a Node as a kubelet does. */
  addNode(node: NodeFacts): Promise<KubeObject>;
  /** Makes a Pod that is bound to a node, or to none ('') as long as nobody has scheduled it. */
  addPod(name: string, nodeName: string, marks?: PodMarks): Promise<KubeObject>;
  /** Says that a Pod runs, and with which address. */
  setPodRunning(name: string, ip: string): Promise<void>;
  /** Asks for a Pod's removal as a person or a controller does: its kubelet sees it, takes its time, and removes it. */
  askRemoval(name: string): Promise<void>;
  /** Removes a Pod at once, as a kubelet does when the sandbox is gone. */
  removePod(name: string, uid?: string): Promise<void>;
  close(): Promise<void>;
};

/** What a Pod carries besides its name. */
export type PodMarks = {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ownerReferences?: NonNullable<KubeObject['metadata']['ownerReferences']>;
  /** Extended resources that it asks for, one of each; default an address of a shared ENI. */
  readonly resources?: readonly string[];
  /** Conditions without which it is not Ready. */
  readonly readinessGates?: readonly string[];
};

/** What a kubelet knows of its node. */
export type NodeFacts = {
  readonly name: string;
  readonly instanceId: string;
  readonly ip: string;
  readonly cores: number;
  readonly zone: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Namespace of the Pods. */
export const POD_NAMESPACE = 'default';
const ROLES: readonly SeedRole[] = ['tke-eni-agent', 'tke-eni-ipamd'];
const SYSTEM = 'kube-system';

/** Starts an API server in which every request needs a right, with the published roles bound. The caller closes it. */
export async function startCluster(settings: Readonly<Record<string, string>>): Promise<Cluster> {
  const server = await startKubeApi({ authorization: 'rbac', bookmarkIntervalMs: 5_000 });
  const admin = connectInProcess(server.api, { clock: systemClock }).client({ userAgent: 'kubelet' });
  for (const role of ROLES) await bindRole(admin, role);
  await admin.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'tke-eni-ipamd', namespace: SYSTEM },
    data: settings,
  });
  const token = server.addToken(ADMIN);
  return {
    server,
    admin,
    kubeconfig: (role, dir, address) => {
      const [path, tokenFile] = [join(dir, 'kubeconfig'), join(dir, 'token')];
      let token = '';
      const rotate = (): void => {
        const old = token;
        token = server.addToken({ namespace: SYSTEM, serviceAccount: role });
        writeFileAtomically(tokenFile, token);
        server.revokeToken(old);
      };
      rotate();
      writeFileSync(path, renderKubeconfig({ url: `http://${address}`, tokenFile }));
      return { path, rotate };
    },
    addNode: (node) => admin.create(NODES, nodeObject(node)),
    addPod: (name, nodeName, { resources = [ENI_IP_RESOURCE], readinessGates: gates = [], ...marks } = {}) => {
      const readinessGates = gates.map((conditionType) => ({ conditionType }));
      const asked = Object.fromEntries(resources.map((resource) => [resource, '1']));
      const containers = [{ name: 'main', image: 'none', resources: { requests: asked, limits: asked } }];
      return admin.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: POD_NAMESPACE, ...marks },
        spec: {
          ...(nodeName === '' ? {} : { nodeName }),
          ...(gates.length > 0 && { readinessGates }),
          containers,
        },
      });
    },
    setPodRunning: async (name, ip) => {
      const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
      const patch = { kind: 'merge', body, subresource: 'status' } as const;
      await admin.patch(PODS, { namespace: POD_NAMESPACE, name }, patch);
    },
    askRemoval: async (name) => void (await admin.delete(PODS, { namespace: POD_NAMESPACE, name })),
    removePod: (name, uid) => removeNow(server.url, token, `/api/v1/namespaces/${POD_NAMESPACE}/pods/${name}`, uid),
    close: () => server.close(),
  };
}

/** Binds the ClusterRoles of a component to its ServiceAccount. */
export async function bindRole(admin: KubeClient, role: SeedRole): Promise<void> {
  const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false } as const;
  for (const object of clusterRolesOf(role)) {
    // A ClusterRole of the file: an object with a name.
    const clusterRole = object as KubeObject;
    const { name } = clusterRole.metadata;
    await admin.create({ ...rbac, plural: 'clusterroles', kind: 'ClusterRole' }, clusterRole);
    await admin.create(
      { ...rbac, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
      {
        ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name } },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', name: role, namespace: SYSTEM }],
      },
    );
  }
}

function nodeObject({ name, instanceId, ip, cores, zone, labels, annotations }: NodeFacts): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        [NODE_INSTANCE_LABEL]: instanceId,
        'kubernetes.io/hostname': name,
        'node.kubernetes.io/instance-type': `S5.${cores}CORE`,
        // TKE writes a number here; the cloud's own name of the zone is asked of the cloud.
        'topology.kubernetes.io/zone': zone === 'ap-guangzhou-3' ? '100003' : '100004',
        ...labels,
      },
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: { providerID: `qcloud:///100003/${instanceId}` },
    status: {
      addresses: [
        { type: 'InternalIP', address: ip },
        { type: 'Hostname', address: name },
      ],
      capacity: { cpu: String(cores), memory: '8Gi', pods: '61' },
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
      ],
    },
  };
}

/** With a uid a namesake that came meanwhile stays. */
async function removeNow(url: string, token: string, path: string, uid?: string): Promise<void> {
  const answer = await fetch(`${url}${path}`, {
    method: 'DELETE',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ gracePeriodSeconds: 0, ...(uid === undefined ? {} : { preconditions: { uid } }) }),
  });
  const isGone = answer.status === 404 || (answer.status === 409 && uid !== undefined);
  if (!answer.ok && !isGone) throw new Error(`DELETE ${path}: ${answer.status} ${await answer.text()}`);
}

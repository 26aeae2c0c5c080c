import type { JsonObject } from '../../sim/kube-api/object.ts';
import { type ContractClient, contractClient } from '../kube-api/contract/client.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import type { RealApi } from '../kube-api/real-api.ts';
import { waitUntil } from '../support/wait-until.ts';

const CLUSTER_PATHS: Readonly<Record<string, string>> = {
  Namespace: '/api/v1/namespaces',
  Node: '/api/v1/nodes',
  MutatingWebhookConfiguration: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  ValidatingAdmissionPolicy: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  IngressClass: '/apis/networking.k8s.io/v1/ingressclasses',
  NodeENIConfig: '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs',
};

const NAMESPACED_PATHS: Readonly<Record<string, readonly [string, string]>> = {
  ServiceAccount: ['/api/v1', 'serviceaccounts'],
  ConfigMap: ['/api/v1', 'configmaps'],
  Role: ['/apis/rbac.authorization.k8s.io/v1', 'roles'],
  RoleBinding: ['/apis/rbac.authorization.k8s.io/v1', 'rolebindings'],
  Secret: ['/api/v1', 'secrets'],
  Service: ['/api/v1', 'services'],
  Ingress: ['/apis/networking.k8s.io/v1', 'ingresses'],
  Pod: ['/api/v1', 'pods'],
  DaemonSet: ['/apis/apps/v1', 'daemonsets'],
  Deployment: ['/apis/apps/v1', 'deployments'],
  PodDisruptionBudget: ['/apis/policy/v1', 'poddisruptionbudgets'],
};

/** Creates objects in their order; fields that the server does not know are a failure. @throws Error naming what was refused */
export async function createAll(api: ContractClient, objects: readonly JsonObject[]): Promise<void> {
  for (const object of objects) {
    const answer = await api.call('POST', `${collectionOf(object)}?fieldValidation=Strict`, object);
    if (answer.status !== 201)
      throw new Error(`${String(object['kind'])} ${String(at(object, 'metadata', 'name'))}: ${JSON.stringify(answer)}`);
  }
}

function collectionOf(object: JsonObject): string {
  const kind = String(object['kind']);
  const path = CLUSTER_PATHS[kind];
  if (path !== undefined) return path;
  const [root, plural] = NAMESPACED_PATHS[kind] ?? [];
  if (root === undefined || plural === undefined) throw new Error(`no path for ${kind}: add it to the table`);
  return `${root}/namespaces/${String(at(object, 'metadata', 'namespace'))}/${plural}`;
}

/** Waits until the server serves our kinds. */
export async function untilEstablished(api: ContractClient): Promise<void> {
  const path = CLUSTER_PATHS['NodeENIConfig'] ?? '';
  const isServed = async () => (await api.call('GET', path)).status === 200;
  await waitUntil(isServed, { what: 'nodeeniconfigs are served', timeoutMs: 30_000, everyMs: 100 });
}

/** Makes a node and a Pod of a component on it, as DaemonSet and scheduler do; the token is bound to that Pod, as the kubelet's. */
export async function tokenOnNode(admin: ContractClient, account: string, node: string): Promise<string> {
  const namespace = 'kube-system';
  const name = `${account}-${node}`;
  await createAll(admin, [
    { apiVersion: 'v1', kind: 'Node', metadata: { name: node } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { nodeName: node, serviceAccountName: account, containers: [{ name: 'main', image: 'none' }] },
    },
  ]);
  const pod = await admin.call('GET', `/api/v1/namespaces/${namespace}/pods/${name}`);
  const uid = String(at(pod.body, 'metadata', 'uid'));
  return requestToken(admin, account, { kind: 'Pod', apiVersion: 'v1', name, uid });
}

/** Asks for a token of a ServiceAccount of kube-system, bound to an object or to none. */
export async function requestToken(
  admin: ContractClient,
  account: string,
  boundObjectRef?: JsonObject,
): Promise<string> {
  const path = `/api/v1/namespaces/kube-system/serviceaccounts/${account}/token`;
  const spec = boundObjectRef === undefined ? {} : { boundObjectRef };
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const answer = await admin.call('POST', path, body);
  const token = at(answer.body, 'status', 'token');
  if (typeof token !== 'string') throw new Error(`no token for ${account}: ${JSON.stringify(answer)}`);
  return token;
}

/** Speaks as the administrator. */
export function adminOf(api: RealApi): ContractClient {
  return contractClient(api.url, api.token, api.ca);
}

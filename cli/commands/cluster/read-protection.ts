import type { KubeClient, KubeObject, ObjectQuery, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { listOf, recordOf } from '../../../runtime/json.ts';

/**
 * Returns a text for each protection against a compromised agent that the server supports and that is not in force: what
 * follows from it, and the next step. Empty when nothing is missing, and when the server is too old for them or does not
 * answer. Never throws for an error of the API server.
 */
export async function readMissingProtection(
  client: Pick<KubeClient, 'listPage'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const protection = await readProtection(client, signal);
  if (protection === undefined) return [];
  const { policy, privilegedAgents } = protection;
  return [...(policy === 'in force' ? [] : [textOf(policy)]), ...privilegedAgents.slice(0, 1).map(describePrivileged)];
}

function textOf(policy: 'missing' | { readonly forbidden: string }): string {
  if (policy === 'missing') {
    return `the agent of a node may write the objects of every node: the admission policy tke-eni-agent-own-node-only is not in force, and this server supports it; next: ${OVERLAY}, or agent.ownNodeOnly=true of the chart`;
  }
  return `may not list ${policy.forbidden}, which tells whether agents are kept to their own nodes; next: ClusterRole tke-eni-viewer has the right`;
}

function describePrivileged(pod: string): string {
  return `the agent ${pod} is privileged, and this server supports an agent with three capabilities; next: ${OVERLAY}, or agent.leastPrivilege=true of the chart`;
}

const OVERLAY = 'start your overlay from conf/kubernetes/overlays/kubernetes-1.30';

/** What confines the agents of a cluster whose server supports admission policies. */
type Protection = {
  /** The policy that keeps each agent to its own node; or the resource that the user may not list. */
  readonly policy: 'in force' | 'missing' | { readonly forbidden: string };
  /** Privileged agents among the first hundred, as `namespace/name`. */
  readonly privilegedAgents: readonly string[];
};

/**
 * Reads what confines the agents. Undefined where the server has no admission policies (before Kubernetes 1.30), and
 * where it does not answer: the lists of the view report that. Never throws for an error of the API server.
 */
async function readProtection(
  client: Pick<KubeClient, 'listPage'>,
  signal: AbortSignal,
): Promise<Protection | undefined> {
  const read = async (
    type: ResourceType,
    query: ObjectQuery,
  ): Promise<readonly KubeObject[] | 'forbidden' | 'none'> => {
    try {
      return (await client.listPage(type, { ...query, limit: MAX_OBJECTS }, signal)).items;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      return error.code === 'FORBIDDEN' ? 'forbidden' : 'none';
    }
  };
  const named = { fieldSelector: `metadata.name=${POLICY_NAME}` };
  const [policies, bindings, agents] = await Promise.all([
    read(POLICIES, named),
    read(POLICY_BINDINGS, named),
    read(PODS, { labelSelector: 'app.kubernetes.io/name=tke-eni,k8s-app=tke-eni-agent' }),
  ]);
  if (policies === 'none' || bindings === 'none') return undefined;
  const privilegedAgents = typeof agents === 'string' ? [] : agents.filter(isPrivileged).map(keyOf);
  if (policies === 'forbidden' || bindings === 'forbidden') {
    const { plural } = policies === 'forbidden' ? POLICIES : POLICY_BINDINGS;
    return { policy: { forbidden: `${plural}.${GROUP}` }, privilegedAgents };
  }
  const isInForce = policies.some(isOurs) && bindings.some((binding) => isOurs(binding) && isDenying(binding));
  return { policy: isInForce ? 'in force' : 'missing', privilegedAgents };
}

const POLICY_NAME = 'tke-eni-agent-own-node-only';
/** Agents of one DaemonSet are alike, so the first ones tell enough. */
const MAX_OBJECTS = 100;
const GROUP = 'admissionregistration.k8s.io';
const POLICIES: ResourceType = {
  group: GROUP,
  version: 'v1',
  plural: 'validatingadmissionpolicies',
  kind: 'ValidatingAdmissionPolicy',
  isNamespaced: false,
};
const POLICY_BINDINGS: ResourceType = {
  ...POLICIES,
  plural: 'validatingadmissionpolicybindings',
  kind: 'ValidatingAdmissionPolicyBinding',
};

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.name === POLICY_NAME;
}

function isDenying({ spec }: KubeObject): boolean {
  const actions = recordOf(spec)['validationActions'];
  return Array.isArray(actions) && actions.includes('Deny');
}

function isPrivileged({ spec }: KubeObject): boolean {
  const containers = listOf(recordOf(spec)['containers']);
  return containers.some((one: unknown) => {
    const context = recordOf(one)['securityContext'];
    return isRecord(context) && context['privileged'] === true;
  });
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

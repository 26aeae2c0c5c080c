import type { KubeClient, KubeObject, ObjectQuery, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { isRecord } from '../../../runtime/decode.ts';
import { listOf, recordOf } from '../../../runtime/json.ts';

/** What confines the agents of a cluster whose server supports admission policies. */
export type Protection = {
  /** The policy that keeps each agent to its own node; or the resource that the user may not list. */
  readonly policy: 'in force' | 'missing' | { readonly forbidden: string };
  /** Privileged agents among the first hundred, as `namespace/name`. */
  readonly privilegedAgents: readonly string[];
};

/**
 * Reads what confines the agents. Undefined where the server has no admission policies (before Kubernetes 1.30), and
 * where it does not answer: the lists of the view report that. Never throws for an error of the API server.
 */
export async function readProtection(
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

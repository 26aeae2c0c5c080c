import type { KubeObject } from '../../kube/kube-client.ts';
import { type JsonObject, listOf, recordOf } from '../../runtime/json.ts';
import type { PodFacts, PodOwner } from './pod-facts.ts';

/** What ipamd caches of a Deployment: the Pods that it selects. */
export type DeploymentFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** As it was written. */
  readonly selector: Readonly<Record<string, unknown>>;
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
};

/** Decodes a Deployment for an informer. One with an unreadable selector matches no Pod. */
export function decodeDeployment({ metadata, spec }: KubeObject): DeploymentFacts {
  const { namespace = '', name, uid = '' } = metadata;
  const selector = recordOf(recordOf(spec)['selector']);
  return { namespace, name, uid, selector, matches: (labels) => matches(selector, labels) };
}

/** Of one that is larger the Pods are not found, as of one that is malformed. */
export const DEPLOYMENT_BOUNDS = { objectBytes: 65_536, namespaceBytes: 4 * 1_048_576 };

/**
 * Finds the workload that a Pod's claim ends with: the Pod's controller. For a ReplicaSet, which ipamd's role may not
 * read, the Deployment whose selector matches the Pod. Undefined for a Pod without a controller, and when several
 * Deployments match.
 */
export function findWorkload(pod: PodFacts, deployments: Iterable<DeploymentFacts>): PodOwner | undefined {
  const { owner, labels = {}, labelCount } = pod.claimInfo ?? {};
  if (owner?.kind === 'ReplicaSet' && labelCount !== undefined) return undefined;
  if (owner === undefined || owner.kind !== 'ReplicaSet') return owner;
  const found = [...deployments].filter((one) => one.namespace === pod.namespace && one.matches(labels));
  const [only] = found;
  if (only === undefined || found.length > 1) return undefined;
  return { apiVersion: 'apps/v1', kind: 'Deployment', name: only.name, uid: only.uid };
}

function matches(selector: JsonObject, labels: Readonly<Record<string, string>>): boolean {
  const required = Object.entries(recordOf(selector['matchLabels']));
  const { matchExpressions: listed = [] } = selector;
  const expressions = Array.isArray(listed) ? listed.map(recordOf) : [];
  if (required.length + expressions.length === 0) return false;
  return (
    required.every(([name, value]) => labels[name] === value) &&
    expressions.every((one) => matchesExpression(one, labels))
  );
}

function matchesExpression({ key, operator, values }: JsonObject, labels: Readonly<Record<string, string>>): boolean {
  const value = typeof key === 'string' ? labels[key] : undefined;
  const list = listOf(values);
  switch (operator) {
    case 'In':
      return value !== undefined && list.includes(value);
    case 'NotIn':
      return !list.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

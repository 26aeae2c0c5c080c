import { isRecord } from '../runtime/decode.ts';
import type { KubeClient } from './kube-client.ts';
import { isKubeError } from './kube-error.ts';
import { apiVersionOf, SELF_SUBJECT_ACCESS_REVIEWS } from './resource-types.ts';

/** A right: a verb on a resource. */
export type Right = {
  readonly verb: string;
  /** API group; absent: the core group. */
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Absent: cluster-wide. */
  readonly namespace?: string;
  /** Absent: objects of any name. A rule with `resourceNames` grants only what is asked for by name. */
  readonly name?: string;
};

/**
 * Asks the API server which of the rights this client lacks. Where it may not even ask, it is taken to have them all: the
 * calls themselves then show what is missing.
 * @throws KubeError when the API server does not answer
 */
export async function findMissingRights(
  client: KubeClient,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<readonly Right[]> {
  const missing: Right[] = [];
  for (const right of rights) if (!(await hasRight(client, right, signal))) missing.push(right);
  return missing;
}

async function hasRight(client: KubeClient, right: Right, signal: AbortSignal): Promise<boolean> {
  const type = SELF_SUBJECT_ACCESS_REVIEWS;
  const resourceAttributes = { group: '', ...right };
  const review = { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name: '' } };
  try {
    const { status } = await client.create(type, { ...review, spec: { resourceAttributes } }, signal);
    return !isRecord(status) || status['allowed'] === true;
  } catch (error) {
    if (isKubeError(error, 'FORBIDDEN', 'NOT_FOUND')) return true;
    throw error;
  }
}

/** Renders a right as people grant it: `patch nodes/status`. */
export function renderRight({ verb, group = '', resource, subresource }: Right): string {
  const full = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${full}${subresource === undefined ? '' : `/${subresource}`}`;
}

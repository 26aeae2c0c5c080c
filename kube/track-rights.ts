import type { KubeClient } from './kube-client.ts';
import { isKubeError, type KubeError } from './kube-error.ts';
import { type CallListener, type CallName, trackCalls } from './track-calls.ts';

/** A right in the form people grant it: the name of a call; or `token`, when no token was accepted. */
type RightName = CallName;

/**
 * Called when a right is found missing, and when it is present again (`error` is undefined then); not with each call.
 */
export type RightsListener = (right: RightName, error: KubeError | undefined) => void;

/** The name for a token that the API server does not accept. */
export const TOKEN_RIGHT = 'token';

/**
 * Wraps a client so that it reports the rights it lacks. Each caller retries a refused call for itself, without end.
 * Only here the refusals are recognized as one missing right that an administrator has to grant.
 */
export function trackRights(client: KubeClient, listener: RightsListener): KubeClient {
  return trackCalls(client, rightsOfCalls(listener));
}

/** Makes a listener to calls that reports each turn of a right. */
function rightsOfCalls(listener: RightsListener): CallListener {
  const missing = new Set<RightName>();
  const lacks = (right: RightName, error: KubeError): void => {
    if (missing.has(right)) return;
    missing.add(right);
    listener(right, error);
  };
  const granted = (right: RightName): void => {
    if (missing.size === 0) return;
    for (const one of [right, TOKEN_RIGHT]) if (missing.delete(one)) listener(one, undefined);
  };
  return (call, error) => {
    if (error === undefined) granted(call);
    else if (isKubeError(error, 'FORBIDDEN')) lacks(call, error);
    else if (isKubeError(error, 'UNAUTHORIZED')) lacks(TOKEN_RIGHT, error);
    // The call failed for another reason, so the right is granted.
    else if (isKubeError(error, 'CONFLICT', 'NOT_FOUND', 'ALREADY_EXISTS', 'INVALID', 'EXPIRED')) granted(call);
  };
}

/** Renders what an administrator has to do about a missing right. */
export function describeMissingRight(right: RightName, error: KubeError, role: string): string {
  const remedy =
    right === TOKEN_RIGHT
      ? `the API server does not accept the token of ${role}; look at its ServiceAccount or kubeconfig`
      : isOfRole(error.text)
        ? `${role} may not ${right}; grant it to its ClusterRole`
        : `${right} of ${role} is refused by an admission webhook, policy or quota of the cluster; correct that`;
  return `${remedy}: ${error.message}`;
}

/**
 * Reports whether a refusal with the status 403 is of the roles, and not of admission, which no role helps against.
 * @see k8s.io/apiserver handlers/responsewriters.forbiddenMessage
 */
export function isOfRole(text: string): boolean {
  return /User "[^"]*" cannot /.test(text) || !/admission|policy|denied|quota/i.test(text);
}

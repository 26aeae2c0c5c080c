import type { Protection } from './read-protection.ts';

/**
 * Returns a text for each protection that the server supports and that is not in force: what follows from it, and the
 * next step. Empty when nothing is missing, or when the server is too old for them.
 */
export function findMissingProtection(protection: Protection | undefined): readonly string[] {
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

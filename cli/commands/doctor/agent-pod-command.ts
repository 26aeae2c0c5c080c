import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';

/**
 * Returns the node's name in the cluster from the agent's records; the placeholder NODE-NAME where it is not recorded.
 */
export function nodeNameOf({ agent }: Pick<NodeFacts, 'agent'>): string {
  const facts = ifKnown(agent);
  const name = facts === undefined ? undefined : ifKnown(facts.node)?.nodeName;
  return name === undefined || name === '' ? 'NODE-NAME' : name;
}

/** Returns the kubectl command for the agent's Pod on this node; `namespace` where another one than the manifests' is known. */
export function agentPodCommand(
  node: Pick<NodeFacts, 'agent'>,
  verb: 'get' | 'delete',
  namespace = 'kube-system',
): string {
  const selectors = `-l k8s-app=tke-eni-agent --field-selector spec.nodeName=${nodeNameOf(node)}`;
  return `kubectl -n ${namespace} ${verb} pod ${selectors}${verb === 'get' ? ' -o wide' : ''}`;
}

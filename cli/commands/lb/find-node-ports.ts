import { readServiceHead, readServiceSpec } from '../../../cloud-controller-manager/services/read-service.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { ConfigError } from '../../../runtime/decode.ts';
import type { LbFacts } from './lb-facts.ts';
import type { Connection } from './select-connection.ts';

/** What is known of a Service whose targets are node ports. */
export type NodePortFacts = {
  readonly policy: 'Cluster' | 'Local';
  /** Its node ports. Another port of a node is that of a Pod in the network of its node. */
  readonly ports: readonly number[];
  /** Its endpoints that are ready: `Pod NAMESPACE/NAME`, and the node where it is. */
  readonly pods: readonly { readonly name: string; readonly node: string }[];
};

/** Finds policy, node ports and Pods of a Service; nothing where its object cannot be read. */
export function findNodePorts(key: string, facts: LbFacts): readonly (readonly [string, NodePortFacts])[] {
  const object = facts.services.find((one) => readServiceHead(one).key === key);
  if (object === undefined) return [];
  const nodeOf = new Map((ifKnown(facts.pods) ?? []).map((pod) => [`${pod.namespace}/${pod.name}`, pod.nodeName]));
  const slices = (ifKnown(facts.slices) ?? []).filter(({ service }) => service === key);
  const pods = slices.flatMap(({ endpoints }) =>
    endpoints.flatMap(({ pod, isReady }) =>
      pod !== undefined && isReady ? [{ name: `Pod ${pod}`, node: nodeOf.get(pod) ?? 'its node' }] : [],
    ),
  );
  try {
    const { externalTrafficPolicy: policy, ports } = readServiceSpec(object);
    return [[key, { policy, pods, ports: ports.flatMap(({ nodePort }) => nodePort ?? []) }]];
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

/** Returns the facts with the class of the Service that has an address: its controller need not be the default one. */
export function findServing(facts: LbFacts, { address }: Connection): LbFacts {
  const heads = facts.services.map(readServiceHead);
  const found = heads.find(({ ingress }) => ingress.some(({ ip, hostname }) => [ip, hostname].includes(address)));
  return { ...facts, loadBalancerClass: found?.loadBalancerClass ?? '' };
}

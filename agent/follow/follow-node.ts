import { parseCidr } from '../../crd/ip-text.ts';
import { isAddress } from '../../dataplane/ip-prefix.ts';
import { type InformerOptions, openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import type { AgentParts } from '../state/ports.ts';
import { type ShownCondition, shownConditionOf } from './refused-condition.ts';

/** What the agent reads of its Node object. */
type OwnNode = {
  readonly podCidrs: readonly string[];
  /** Its addresses of type InternalIP. */
  readonly internalIps: readonly string[];
  /** How many Pods it can run, as kubelet reports it; absent before its first report. */
  readonly maxPods?: number;
  /** What it says of refusals of the agent; undefined without that condition. */
  readonly refused?: ShownCondition;
};

/** Dependencies of following the Node object. */
type FollowNodeDeps = Pick<AgentParts, 'background'> &
  Pick<InformerOptions<OwnNode>, 'client' | 'clock' | 'log' | 'random'> & {
    readonly nodeName: string;
    /** Called with the Node at each change; not while there is no Node. */
    readonly accept: (node: OwnNode) => void;
  };

/** Follows this node's Node object. Returns the function that ends it. */
export function followNode({ background, client, nodeName, clock, log, random, accept }: FollowNodeDeps): () => void {
  const closing = new AbortController();
  const informer = openInformer({
    ...{ client, clock, log, random },
    type: NODES,
    query: { fieldSelector: `metadata.name=${nodeName}` },
    decode: ownNodeOf,
  });
  informer.subscribe(() => {
    // A Node that was deleted comes back, perhaps with another block: until then nothing is known.
    const node = informer.get(nodeName);
    if (node !== undefined) accept(node);
  });
  background('following the Node', informer.start(closing.signal));
  return () => closing.abort('closed');
}

/** Reads a Node; what is no CIDR or no address is left out. */
export function ownNodeOf(node: KubeObject): OwnNode {
  const { spec, status } = node;
  const refused = shownConditionOf(node);
  const { podCIDR, podCIDRs } = recordOf(spec);
  const listed: readonly unknown[] = [podCIDR, ...listOf(podCIDRs)];
  const cidrs = listed.filter((one): one is string => typeof one === 'string' && parseCidr(one) !== undefined);
  const internal = listOf(recordOf(status)['addresses'])
    .map(recordOf)
    .filter(({ type }) => type === 'InternalIP')
    .map(({ address }) => address);
  const ips = internal.filter((one): one is string => typeof one === 'string' && isAddress(one));
  return {
    podCidrs: [...new Set(cidrs)].slice(0, MAX_PER_NODE),
    internalIps: [...new Set(ips)].slice(0, MAX_PER_NODE),
    ...maxPodsOf(recordOf(status)['allocatable']),
    ...(refused === undefined ? {} : { refused }),
  };
}

function maxPodsOf(allocatable: unknown): Pick<OwnNode, 'maxPods'> {
  const { pods } = recordOf(allocatable);
  // kubelet writes a plain number; another form of a quantity bounds nothing.
  return typeof pods === 'string' && /^\d{1,6}$/.test(pods) && Number(pods) > 0 ? { maxPods: Number(pods) } : {};
}

/** A Node has at most one block of each family, and mostly one address. */
const MAX_PER_NODE = 4;

import { parseCidr } from '../../crd/ip-text.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { runInBackground } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import type { Logger } from '../../runtime/log.ts';

/** Dependencies of following the Node object. */
type FollowPodCidrDeps = {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Called with the blocks of the Node, none while it has none; not while there is no Node. */
  readonly accept: (cidrs: readonly string[]) => void;
};

/** Follows `spec.podCIDR` of this node's Node object. Returns the function that ends it. */
export function followPodCidr({ client, nodeName, clock, log, random, accept }: FollowPodCidrDeps): () => void {
  const closing = new AbortController();
  const informer = openInformer({
    ...{ client, clock, log, random },
    type: NODES,
    query: { fieldSelector: `metadata.name=${nodeName}` },
    decode: podCidrsOf,
  });
  informer.subscribe(() => {
    // A Node that was deleted comes back, perhaps with another block: until then nothing is known.
    const cidrs = informer.get(nodeName);
    if (cidrs !== undefined) accept(cidrs);
  });
  runInBackground('following the Node', informer.start(closing.signal));
  return () => closing.abort('closed');
}

/** Reads the blocks of a Node; what is no CIDR is left out. */
function podCidrsOf({ spec }: KubeObject): readonly string[] {
  const { podCIDR, podCIDRs } = recordOf(spec);
  const listed: readonly unknown[] = [podCIDR, ...listOf(podCIDRs)];
  const cidrs = listed.filter((one): one is string => typeof one === 'string' && parseCidr(one) !== undefined);
  return [...new Set(cidrs)].slice(0, MAX_BLOCKS);
}

/** A Node has at most one block of each family. */
const MAX_BLOCKS = 4;

import { eniId, linkId, podId } from '../catalogue/element-id.ts';
import type { ModelPod } from '../model/node-model.ts';
import { ifKnown } from '../node/known.ts';
import type { Hop } from './explanation.ts';
import { hopOf, unknownHop } from './hop.ts';

const WHY =
  'the Pod has an ENI of its own: its packets leave inside its namespace; no rule or table of this node leads them';

/** Builds the hop where a packet leaves a Pod that has its own ENI: by the ENI, or by the Pod's link to the node. */
export function ownExitHop(view: ModelPod, oif: number | undefined): Hop {
  if (oif === undefined || oif === view.podLink?.ifindex) return ownEniHop(view, 'leaves');
  const name = ifKnown(view.pod.inside)?.links.find(({ ifindex }) => ifindex === oif)?.ifname ?? `interface ${oif}`;
  const title = `leaves by ${name}, the link to this node beside its own ENI`;
  const fields = { kind: 'veth' as const, element: linkId(view.veth?.ifindex ?? 0), title };
  const why = 'what the node does with it from here on is not walked';
  return unknownHop(fields, why, `ip route get <address> iif ${view.veth?.ifname ?? '<link>'}`);
}

/** Builds the hop of the ENI inside a Pod. */
export function ownEniHop(view: ModelPod, verb: 'leaves' | 'arrives'): Hop {
  const id = view.lease?.eniId;
  const title = `${verb} by ${ownEniText(view)}, which is ${view.ifName} in the Pod`;
  const element = id === undefined ? podId(view.pod.key) : eniId(id);
  return hopOf({ kind: 'eni', element, title, details: [WHY] });
}

/** Names the ENI that belongs to the Pod alone. */
export function ownEniText({ lease }: ModelPod): string {
  return lease === undefined ? 'an ENI of its own' : `ENI ${lease.eniId}, its own`;
}

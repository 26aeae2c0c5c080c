import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { joinLimited } from '../../runtime/limit-text.ts';
import type { NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { isShared } from './with-enis.ts';

/**
 * Returns for people what the ENIs of a node that is drained wait for: live Pods, or the agent, which has not offered
 * what is free. Undefined when they wait for neither.
 */
export function findHolders(view: NodeView, status: NodeEniConfigStatus): string | undefined {
  if (view.leaving !== 'drain') return undefined;
  const offers = offersOf({ ...view, status });
  const waiting = (status.eniInfos ?? []).filter((eni) => eni.state !== 'Detaching' && !offers.isVacant(eni));
  const ips = waiting.flatMap(podIpsOf);
  const pods = ips.flatMap((ip) => {
    const pod = view.podNames?.get(ip);
    return pod === undefined ? [] : [`${pod} (${ip})`];
  });
  if (pods.length > 0) return `Pods that use their addresses: ${joinLimited(pods.sort())}`;
  if (waiting.length === 0) return undefined;
  return `the agent of the node to offer ${joinLimited(waiting.map(({ eniID }) => eniID))}: without it nothing says that their addresses are free`;
}

function podIpsOf(eni: NodeEniInfo): readonly string[] {
  if (!isShared(eni)) return eni.primaryIP === undefined ? [] : [eni.primaryIP];
  return (eni.addresses ?? []).map(({ ip }) => ip);
}

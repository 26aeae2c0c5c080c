import { AF_INET } from '../netlink/uapi/netlink.ts';
import { type InsideSigns, isEmptied, isTaken } from './decide-inside.ts';
import { EMPTY_STATE, type PodState } from './desired.ts';
import type { InNetns } from './kernel.ts';

/**
 * Returns the part of a Pod's plan that holds in its namespace: all of it, or, where a sandbox took addresses and routes
 * out, its links.
 * @param handler asks the runtime for the Pod's handler; called only where addresses and routes are gone
 * @throws NetlinkError when the namespace cannot be read
 */
export async function planInside(
  inPod: Pick<InNetns, 'rtnetlink' | 'packetLinks'>,
  plan: PodState,
  handler: (() => Promise<string | undefined>) | undefined,
): Promise<PodState> {
  const ifindexes = plan.addresses.map(({ ifindex }) => ifindex);
  const signs = readSigns(inPod);
  if (!isEmptied(signs, ifindexes)) return plan;
  return isTaken(signs, ifindexes, await handler?.()) ? { ...EMPTY_STATE, links: plan.links } : plan;
}

function readSigns({ rtnetlink, packetLinks }: Parameters<typeof planInside>[0]): InsideSigns {
  return {
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    routes: rtnetlink.route.list({ family: AF_INET }),
    packetLinks: packetLinks(),
  };
}

import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import type { QdiscMessage } from '../../netlink/qdisc-message.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { TC_H_INGRESS_EGRESS, TC_H_MIN_EGRESS, TC_H_MIN_INGRESS } from '../../netlink/uapi/pkt-sched.ts';
import { listXfrmPolicies } from '../../netlink/xfrm.ts';
import { known, unknown } from './known.ts';
import type { Known, TrafficFacts } from './node-facts.ts';

/**
 * Reads what other programs put between a link and the network stack, in the current namespace. Never throws NetlinkError
 * or LibcError: what cannot be read is returned as unknown.
 */
export function readTrafficFacts(rtnetlink: Rtnetlink): TrafficFacts {
  const qdiscs = readable('qdiscs', () => rtnetlink.qdisc.list());
  const places = qdiscs.kind === 'known' ? qdiscs.value.flatMap(placesOf) : [];
  return {
    qdiscs,
    filters: readable('traffic filters', () => places.flatMap((place) => rtnetlink.trafficFilter.list(place))),
    policies: readPolicies(),
  };
}

/** Places of a discipline that can have filters. */
function placesOf({ kind, ifindex, handle }: QdiscMessage): readonly { ifindex: number; parent: number }[] {
  const at = (parent: number) => ({ ifindex, parent: parent >>> 0 });
  if (kind === 'clsact') {
    return [at(TC_H_INGRESS_EGRESS | TC_H_MIN_INGRESS), at(TC_H_INGRESS_EGRESS | TC_H_MIN_EGRESS)];
  }
  if (kind === 'ingress') return [at(TC_H_INGRESS_EGRESS | TC_H_MIN_INGRESS)];
  return handle === 0 ? [] : [at(handle)];
}

function readPolicies(): TrafficFacts['policies'] {
  try {
    return known(listXfrmPolicies());
  } catch (error) {
    // The kernel has no IPsec, so it has no policies.
    if (error instanceof LibcError && error.code === 'EPROTONOSUPPORT') return known([]);
    return whyNot('IPsec policies', error);
  }
}

function readable<T>(what: string, read: () => T): Known<T> {
  try {
    return known(read());
  } catch (error) {
    return whyNot(what, error);
  }
}

function whyNot(what: string, error: unknown): Known<never> {
  if (!(error instanceof NetlinkError || error instanceof LibcError)) throw error;
  if (error.code === 'EPERM') return unknown(`${what} can be read by root only`, 'run as root, or with CAP_NET_ADMIN');
  return unknown(`${what} cannot be read: ${error.message}`, 'try `tc qdisc show` and `ip xfrm policy` by hand');
}

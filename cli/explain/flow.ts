import type { RouteQuery } from '../../netlink/request.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';

/** A packet as routing sees it: what rules may select by. @see include/net/flow.h struct flowi4, flowi6 */
export type Flow = {
  readonly family: 4 | 6;
  readonly dst: string;
  /** Absent: the sender left the choice to the kernel. */
  readonly src?: string;
  /** Link that it came in by; absent: the namespace's own packet. */
  readonly iif?: number;
  /** Link that the sender is bound to. */
  readonly oif?: number;
  readonly mark: number;
  /** Byte of the header; default 0. */
  readonly tos?: number;
  /** IPPROTO_*. */
  readonly ipProto?: number;
  readonly sport?: number;
  readonly dport?: number;
  /** Owner of the sending socket; default root, whom forwarded packets count for too. */
  readonly uid?: number;
};

/** How the kernel numbers a family. */
export function addressFamily(family: 4 | 6): number {
  return family === 4 ? AF_INET : AF_INET6;
}

/** Asks the kernel for the same packet. */
export function queryOf(flow: Flow, fibmatch: boolean): RouteQuery {
  const { family: _family, mark, ...rest } = flow;
  return { ...rest, ...(mark === 0 ? {} : { mark }), uid: flow.uid ?? 0, ...(fibmatch ? { fibmatch } : {}) };
}

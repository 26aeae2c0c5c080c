import type { RouteQuery } from '../../netlink/request.ts';

/** The fields of a packet by which rules and routes select. @see include/net/flow.h struct flowi4, flowi6 */
export type Flow = {
  readonly family: 4 | 6;
  readonly dst: string;
  /** Absent: the sender left the selection to the kernel. */
  readonly src?: string;
  /** Link on which it arrived; absent: the namespace's own packet. */
  readonly iif?: number;
  /** Link to which the sender is bound. */
  readonly oif?: number;
  readonly mark: number;
  /** TOS byte or traffic class of the header; default 0. */
  readonly tos?: number;
  /** IPPROTO_*. */
  readonly ipProto?: number;
  readonly sport?: number;
  readonly dport?: number;
  /** Owner of the sending socket; default root, as also for forwarded packets. */
  readonly uid?: number;
};

/** Builds the kernel query for the same packet. */
export function queryOf(flow: Flow, fibmatch: boolean): RouteQuery {
  const { family: _family, mark, ...rest } = flow;
  return { ...rest, ...(mark === 0 ? {} : { mark }), uid: flow.uid ?? 0, ...(fibmatch ? { fibmatch } : {}) };
}

import type { Flow as LearnedFlow } from '../../dataplane/fast-path/flow-layout.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { Known } from '../node/node-facts.ts';
import type { Flow } from './flow.ts';

/** The kernel's own answer for a packet. */
export type KernelAnswer =
  | { readonly kind: 'route'; readonly route: RouteMessage }
  /** `code`: name of the errno. */
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'unknown'; readonly why: string };

/**
 * Asks the kernel by RTM_GETROUTE, in the node's namespace or in that of the Pod with this lease key. With `fibmatch`
 * the answer is the matching route of the table, otherwise the resolved route of this packet. Changes nothing.
 * @see rtnetlink(7)
 */
export type KernelLookup = (podKey: string | undefined, flow: Flow, fibmatch: boolean) => KernelAnswer;

/** Flows that the fast path follows now, of one node. `nowNs`: when they were read, CLOCK_MONOTONIC. */
export type FollowedFlows = { readonly flows: readonly LearnedFlow[]; readonly nowNs: bigint };

/** Reads the flows that a program of the fast path follows. @param programId of a filter that is attached */
export type ReadFollowedFlows = (programId: number) => Known<FollowedFlows>;

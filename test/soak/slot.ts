import type { PodNetns } from '../support/pod-netns.ts';

/** What a place for a Pod holds. */
type SlotState =
  | { readonly kind: 'free' }
  /** An ADD is under way, or one that failed is being cleared up. */
  | { readonly kind: 'adding' }
  | LiveState
  /** A DEL is under way, or left for the agent to find. */
  | { readonly kind: 'ending' }
  /** The sandbox died without a DEL; its lease is the agent's to find. */
  | { readonly kind: 'lost'; readonly containerId: string };

/** A Pod that has its network. */
export type LiveState = {
  readonly kind: 'live';
  readonly containerId: string;
  readonly podName: string;
  readonly podUid: string;
  readonly ip: string;
  /** It is an object in the API server too. */
  readonly isKnown: boolean;
};

/** A place for a Pod: a network namespace that is made once and used by one sandbox after the other. */
export type Slot = {
  netns: PodNetns;
  state: SlotState;
  /** Somebody looks at the Pod: no DEL meanwhile. */
  isHeld: boolean;
};

import type { Informer } from '../../kube/informer.ts';
import type { WorkQueue } from '../../kube/work-queue.ts';
import type { Sweep } from '../audit/run-sweep.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import type { ClaimRefusal } from '../calls/node-deps.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { ClaimWait } from '../decide/decision.ts';
import type { LeaderTerm } from './leader-term.ts';

/**
 * A feature beside the supply of nodes: it asks for addresses, keeps some, or keeps objects of its own. The core imports no
 * guest; a new one is a value in a file of its own folder, and an entry in `ipamd/guests/all.ts`.
 */
export type Guest = {
  readonly name: string;
  /** Whether the settings give it something to do; default: they do. */
  readonly isWanted?: (config: IpamdConfig) => boolean;
  /** Name of its work queue in metrics, wanted or not; absent: it has none there. */
  readonly queue?: string;
  /**
   * Makes what it has in one term of leadership; nothing runs yet, and no later term uses it. The queue is closed once the term is
   * to end: running work goes on.
   */
  readonly open: (term: LeaderTerm, queue: WorkQueue) => OpenGuest;
};

/** What a guest has in one term. */
export type OpenGuest = {
  /** Informers that the leader alone needs: started with the term, and waited for by the controllers that read them. */
  readonly informers?: readonly Informer<unknown>[];
  /** In the order in which they start. */
  readonly controllers?: readonly Controller[];
  readonly sweeps?: readonly Sweep[];
  readonly wants?: Wants;
  readonly notes?: Notes;
  /** Informers whose state metrics show, by name; those that are not opened yet are undefined. */
  readonly shownInformers?: () => Readonly<Record<string, Informer<unknown> | undefined>>;
};

/**
 * Work of a term. Runs until aborted, or until nothing is left to do. A fault of the cloud or of the API server is reported and
 * tried again, never thrown.
 */
export type Controller = (signal: AbortSignal) => Promise<unknown>;

/** What a guest asks of the supply of nodes, read on each look at one. Requests of claims are in `term.requests`. */
type Wants = {
  /** Returns the addresses that stay on a node's ENIs while the guest says so; undefined: it keeps none there. */
  readonly keptIps?: (node: NodeEntry) => ReadonlySet<string> | 'unknown' | undefined;
};

/** What a guest hears from the supply of nodes. */
type Notes = {
  /** The cloud refused a call for one static address; `key` is `namespace/name` of its claim. */
  readonly claimRefused?: (key: string, refusal: ClaimRefusal) => void;
  /** Why claims whose Pods are on the node wait for their address, by key; on each pass of the node. */
  readonly claimsWait?: (node: string, waits: ReadonlyMap<string, ClaimWait>) => void;
  /** What claims ask of the node has changed. */
  readonly requested?: (node: string) => void;
};

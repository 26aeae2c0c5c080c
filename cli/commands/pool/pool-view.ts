import type { SummaryReply } from '../../../agent/api/ops-messages.ts';
import type { Family } from '../../../dataplane/ip-prefix.ts';
import type { Stay } from './stays.ts';

/**
 * State of an address. unready: assigned to an ENI that cannot serve now (being attached or set up, draining). kept: a
 * static address that none of its Pods uses now. registered: no Pod has it, and a load balancer may still have it as a
 * target.
 */
export type AddressUse = 'free' | 'in-use' | 'kept' | 'cooling' | 'registered' | 'offered' | 'releasing' | 'unready';

/** One Pod address of the node. */
export type AddressView = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  readonly use: AddressUse;
  readonly assignmentId: string;
  /** The Pod that uses it; names are empty where the runtime gave none. */
  readonly owner?: {
    readonly containerId: string;
    readonly ifName: string;
    readonly podNamespace: string;
    readonly podName: string;
  };
  /** Remaining cooldown; only while cooling. */
  readonly coolRemainingMs?: number;
  /** True when the supply does not list it any more: it is removed together with its owner. */
  readonly isUnlisted?: true;
  /** Set for a static address: the Pods it belongs to, in use or not. */
  readonly keptFor?: {
    /** `namespace/name` of its Pods. */
    readonly pods: string;
    /** Uid of the Pod that may use it now; absent while none may. */
    readonly uid?: string;
  };
};

/** One ENI of the node; fields that only the agent has are absent without it. */
export type PoolEniView = {
  readonly eniId: string;
  readonly ifname?: string;
  readonly table?: number;
  readonly slot?: number;
  readonly mac: string;
  /** Its own addresses, IPv4 first, with their subnets ('addr/len'). */
  readonly primary: readonly { readonly ip: string; readonly subnetCidr: string }[];
  readonly attached: boolean;
  readonly draining: boolean;
  /** Whether it serves new Pods; undefined: not known. */
  readonly ready?: boolean;
  /** Why it is not ready; empty when it is. */
  readonly problem: string;
};

/** One block of addresses of GlobalRoute Pods, a podCIDR of the node. */
export type BlockView = {
  /** 'addr/len' */
  readonly cidr: string;
  /** False for a block that is no longer the node's, and that Pods still live in. */
  readonly isCurrent: boolean;
  /** Addresses that Pods can have. */
  readonly total: number;
  readonly inUse: number;
  readonly cooling: number;
  /** Held: a file of host-local names another owner, whose end has no proof yet. */
  readonly held: number;
  /** 0 for a former block: it serves no new Pod. */
  readonly free: number;
};

/** The node's addresses and ENIs, as the agent reports them, or from its journal alone. */
export type PoolView = {
  readonly source: 'agent' | 'journal';
  /** Only of a view from the journal: why the agent did not answer. */
  readonly whyNoAgent?: string;
  /** True where the running agent is too old to support the request. */
  readonly isAgentOld?: boolean;
  /** True where an agent listens and did not answer in time; else absent. */
  readonly isAgentSilent?: boolean;
  readonly nodeName: string;
  /** Another program gives the addresses to Pods (`--role=uplinks`): which of them it gave is not known here. */
  readonly role?: 'uplinks';
  readonly addresses: readonly AddressView[];
  readonly enis: readonly PoolEniView[];
  /** Blocks of GlobalRoute Pods, the present one first; absent where there are none. */
  readonly blocks?: readonly BlockView[];
  readonly warm?: { readonly min: number; readonly max: number; readonly limit?: number };
  /** Demand: the number of addresses that the node should have. */
  readonly demand?: number;
  /** The part of it that the API server has, 0 before the first write; absent where the agent writes none, or is too old. */
  readonly asked?: number;
  /** ADDs that wait for an address: 'namespace/name' or container ids. */
  readonly waiting?: readonly string[];
  readonly supplyEpoch?: number;
  /** Problem of the supply; empty when there is none. */
  readonly supplyProblem: string;
};

/** A pool view, and what the agent says besides. */
export type PoolReading = {
  readonly view: PoolView;
  /** By ENI why the agent offers none of its free addresses; empty where no agent answers. */
  readonly agentStays: ReadonlyMap<string, readonly Stay[]>;
  /** The agent's summary of the same moment; absent where the journal was read. */
  readonly summary?: SummaryReply;
};

/** Numbers of addresses by state, and their total. */
export type UseCounts = Readonly<Record<AddressUse, number>> & { readonly total: number };

/** Counts addresses by state. */
export function countUses(addresses: readonly AddressView[]): UseCounts {
  const counts = {
    'in-use': 0,
    free: 0,
    kept: 0,
    cooling: 0,
    offered: 0,
    releasing: 0,
    unready: 0,
    registered: 0,
    total: addresses.length,
  };
  for (const { use } of addresses) counts[use] += 1;
  return counts;
}

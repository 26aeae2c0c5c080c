import type { Family } from '../../agent/journal/lease.ts';

/**
 * What an address is doing. unready: assigned to an ENI that cannot serve (being attached or set up, draining). kept: for
 * the Pods of one name, none of which has it now.
 */
export type AddressUse = 'free' | 'in-use' | 'kept' | 'cooling' | 'offered' | 'releasing' | 'unready';

/** The order in which uses are shown. */
export const ADDRESS_USES = ['in-use', 'free', 'kept', 'cooling', 'unready', 'offered', 'releasing'] as const;

/** One Pod address of the node. */
export type AddressView = {
  readonly ip: string;
  readonly family: Family;
  readonly eniId: string;
  readonly use: AddressUse;
  readonly assignmentId: string;
  /** The owner, while in use; names are empty where the runtime gave none. */
  readonly owner?: {
    readonly containerId: string;
    readonly ifName: string;
    readonly podNamespace: string;
    readonly podName: string;
  };
  /** While cooling. */
  readonly coolRemainingMs?: number;
  /** True when the supply lists it no more: it goes with its owner. */
  readonly isUnlisted?: true;
  /** Whose it is beyond one Pod's life, whoever has it now. */
  readonly keptFor?: {
    /** `namespace/name` of its Pods. */
    readonly pods: string;
    /** The Pod that may use it now; absent while none may. */
    readonly uid?: string;
  };
};

/** One ENI of the node; what only the agent knows is absent without it. */
export type EniView = {
  readonly eniId: string;
  readonly ifname?: string;
  readonly table?: number;
  readonly slot?: number;
  readonly mac: string;
  /** Own addresses, IPv4 first, with their subnets ('addr/len'). */
  readonly primary: readonly { readonly ip: string; readonly subnetCidr: string }[];
  readonly attached: boolean;
  readonly draining: boolean;
  /** Undefined: nobody says. */
  readonly ready?: boolean;
  /** Why it is not ready; empty when it is. */
  readonly problem: string;
};

/** The node's addresses and ENIs, as the agent tells them or its journal alone. */
export type PoolView = {
  readonly source: 'agent' | 'journal';
  /** Of a view from the journal: why the agent was not asked. */
  readonly whyNoAgent?: string;
  /** True where an agent runs that does not know the question. */
  readonly isAgentOld?: boolean;
  readonly nodeName: string;
  readonly addresses: readonly AddressView[];
  readonly enis: readonly EniView[];
  readonly warm?: { readonly min: number; readonly max: number; readonly limit?: number };
  /** Addresses that the node asks for. */
  readonly demand?: number;
  /** ADDs that wait for an address: 'namespace/name' or container ids. */
  readonly waiting?: readonly string[];
  readonly supplyEpoch?: number;
  /** What is wrong with the supply; empty when nothing is. */
  readonly supplyProblem: string;
};

/** Numbers of addresses by use, and all of them. */
export type UseCounts = Readonly<Record<AddressUse, number>> & { readonly total: number };

/** Counts addresses by use. Pure. */
export function countUses(addresses: readonly AddressView[]): UseCounts {
  const counts = {
    'in-use': 0,
    free: 0,
    kept: 0,
    cooling: 0,
    offered: 0,
    releasing: 0,
    unready: 0,
    total: addresses.length,
  };
  for (const { use } of addresses) counts[use] += 1;
  return counts;
}

import type { ReleaseState } from '../../../crd/cilium-node.ts';
import { NOTHING_SEEN, type ReleaseMemory } from '../../../ipamd/guests/cilium/release-memory.ts';

/** Has its address forever, outside of all that is decided here. */
export const ROUTER = '10.0.0.10';
/** Pods that may live on the node. */
export const PODS = ['shop/a', 'shop/b'] as const;

/**
 * Times in steps of the clock. The API server knows the address of a Pod before the clock has gone on twice, which is what
 * ipamd waits for before it acts on an answer.
 */
export const SETTINGS = { unusedMs: 2, settleMs: 2, answerMs: 2 };

/** The CiliumNode in etcd. Who writes on an older one is refused: a new value is a new object, and so a new version. */
export type CiliumObject = {
  /** Owners by address; '' for none. */
  readonly pool: ReadonlyMap<string, string>;
  readonly used: ReadonlyMap<string, string>;
  readonly releases: ReadonlyMap<string, ReleaseState>;
  /** `operator-status.error`: 0 for none; another number, another text. */
  readonly error: number;
};

/** Addresses on the node's ENIs as the NodeENIConfig has them. */
type NecAddresses = ReadonlyMap<string, { readonly isLeaving: boolean; readonly isOffered: boolean }>;

/** Cilium's agent. Only Pods outlive it. */
export type AgentState = {
  /** 'starting': without an allocator. 'unrestored': it has one, and knows no Pod yet. */
  readonly stage: 'down' | 'starting' | 'unrestored' | 'running';
  /** What it has read, and the entries as it answered them. */
  readonly copy:
    | {
        readonly base: CiliumObject;
        readonly releases: ReadonlyMap<string, ReleaseState>;
        /** The object's content has changed since. */
        readonly isOutdated: boolean;
      }
    | undefined;
  readonly allocated: ReadonlyMap<string, string>;
  readonly isDirty: boolean;
};

/** What one look of ipamd led to, and was not written yet. */
export type IpamdWrites = {
  /** The write is refused on anything else. */
  readonly object: CiliumObject;
  readonly nec: NecAddresses;
  readonly pool: ReadonlyMap<string, string> | undefined;
  readonly status: { readonly releases: ReadonlyMap<string, ReleaseState>; readonly error: number } | undefined;
  readonly offers: ReadonlySet<string> | undefined;
};

/** A Pod with an address. */
export type LivePod = {
  readonly ip: string;
  /** The API server has its address. */
  readonly isKnown: boolean;
  /** Steps of the clock since it has its address, as long as that is unknown. */
  readonly age: number;
};

/** What may still happen of each kind. */
type Budget = {
  readonly crashes: number;
  readonly faults: number;
  readonly pods: number;
  /** How often the number of wanted addresses changes. */
  readonly wishes: number;
};

/** A mutation of what is decided, or of what it is decided from. */
export type PlantedFault =
  | 'no-veto'
  | 'no-settle'
  | 'leaves-pool-when-marked'
  | 'offered-in-pool'
  | 'no-pin'
  | 'withdraws-marks'
  | 'keeps-refused'
  | 'no-report';

/** A system to explore. */
export type CiliumSetting = {
  /** Addresses that one node and its neighbour may have. */
  readonly ips: readonly string[];
  readonly budget: Budget;
  /** Free addresses that are wanted, in turn. */
  readonly wishes: readonly number[];
  readonly planted?: PlantedFault;
};

/** One state of everything: frozen, and each step makes another. */
export type CiliumWorld = {
  readonly object: CiliumObject;
  readonly nec: NecAddresses;
  readonly cloud: ReadonlyMap<string, 'here' | 'free' | 'elsewhere'>;
  readonly agent: AgentState;
  readonly memory: ReleaseMemory;
  readonly writes: IpamdWrites | undefined;
  readonly pods: ReadonlyMap<string, LivePod>;
  readonly wish: number;
  readonly now: number;
  readonly left: Budget;
};

/** All addresses are here and free, and the agent has just written its status. */
export function firstWorld({ ips, budget, wishes }: CiliumSetting): CiliumWorld {
  const object: CiliumObject = {
    pool: new Map(ips.map((ip) => [ip, ''])),
    used: new Map([[ROUTER, 'router']]),
    releases: new Map(),
    error: 0,
  };
  return {
    object,
    nec: new Map(ips.map((ip) => [ip, { isLeaving: false, isOffered: false }])),
    cloud: new Map(ips.map((ip) => [ip, 'here'])),
    agent: {
      stage: 'running',
      copy: { base: object, releases: new Map(), isOutdated: false },
      allocated: new Map(),
      isDirty: false,
    },
    memory: { ...NOTHING_SEEN, used: new Map([[ROUTER, { owner: 'router' }]]), aliveMs: 0 },
    writes: undefined,
    pods: new Map(),
    wish: wishes[0] ?? 0,
    now: 0,
    left: budget,
  };
}

/** A map with one entry more, less (undefined) or changed. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V | undefined): ReadonlyMap<K, V> {
  const next = new Map(map);
  if (value === undefined) next.delete(key);
  else next.set(key, value);
  return next;
}

/** Kinds of kernel objects whose changes are reported. */
export const KERNEL_KINDS = ['link', 'address', 'route', 'rule', 'neigh', 'nft'] as const;

/** Kinds of the agent's events, in lower case. */
export const AGENT_KINDS = [
  'add',
  'del',
  'check',
  'gc',
  'repair',
  'supply',
  'publish',
  'conflict',
  'fight',
  'status',
] as const;

/** Subject of an event; `lost`: events are missing at this point. */
export type WatchKind = (typeof KERNEL_KINDS)[number] | (typeof AGENT_KINDS)[number] | 'lost';

/** Owner of a changed object. */
export type WatchOwner =
  | {
      readonly kind: 'pod';
      /** 'namespace/name'; without a name the beginning of the container id, and the interface. */
      readonly name: string;
      readonly containerId: string;
      readonly ips: readonly string[];
      readonly eniId: string;
    }
  | { readonly kind: 'eni'; readonly eniId: string; readonly ifname: string; readonly table: number }
  /** An object of tke-eni for the whole node. */
  | { readonly kind: 'node' };

/** One line of `tke-eni watch`. */
export type WatchEvent = {
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  readonly source: 'kernel' | 'agent';
  readonly kind: WatchKind;
  /** '+' created, '-' deleted, '~' changed; for the agent: 'ok' or 'failed'. */
  readonly change: '+' | '-' | '~' | 'ok' | 'failed';
  readonly text: string;
  /** True when it has the protocol number of tke-eni or is one of its links. */
  readonly isOurs: boolean;
  readonly owner?: WatchOwner;
  /** Process that made the change: 'networkd (pid 512)'. Absent where the kernel did, and where it names none. */
  readonly by?: string;
  /** The agent's changes of the kernel, as the commands that make them by hand. */
  readonly operations?: readonly string[];
  /** Changes that happen all the time by themselves: neighbour states, the kernel's own routes. */
  readonly isNoise: boolean;
};

/** Which events to show; empty lists and absent fields select all. */
export type WatchFilter = {
  /** Part of 'namespace/name', an address, or the beginning of a container id. */
  readonly pod?: string;
  /** ENI id, its interface or its table; Pods on it are included. */
  readonly eni?: string;
  readonly kinds: readonly string[];
  /** Also shows noise. */
  readonly isAll: boolean;
};

/** Reports whether an event matches the filter. Lost events match every filter. */
export function matchesFilter(event: WatchEvent, { pod, eni, kinds, isAll }: WatchFilter): boolean {
  if (event.kind === 'lost') return true;
  if (event.isNoise && !isAll) return false;
  if (kinds.length > 0 && !kinds.includes(event.kind)) return false;
  if (pod !== undefined && !isOfPod(event.owner, pod)) return false;
  return eni === undefined || isOfEni(event.owner, eni);
}

function isOfPod(owner: WatchOwner | undefined, query: string): boolean {
  if (owner?.kind !== 'pod') return false;
  const isId = query.length >= 4 && owner.containerId.startsWith(query);
  return owner.name.includes(query) || owner.ips.includes(query) || isId;
}

function isOfEni(owner: WatchOwner | undefined, query: string): boolean {
  if (owner?.kind === 'pod') return owner.eniId === query;
  return owner?.kind === 'eni' && [owner.eniId, owner.ifname, `${owner.table}`].includes(query);
}

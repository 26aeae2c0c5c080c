/** Kinds of kernel objects whose changes are told. */
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

/** What an event is about; `lost` says that events are missing here. */
export type WatchKind = (typeof KERNEL_KINDS)[number] | (typeof AGENT_KINDS)[number] | 'lost';

/** Whom a changed thing belongs to. */
export type WatchOwner =
  | {
      readonly kind: 'pod';
      /** 'namespace/name', or the container id's beginning with the interface where nobody told a name. */
      readonly name: string;
      readonly containerId: string;
      readonly ips: readonly string[];
      readonly eniId: string;
    }
  | { readonly kind: 'eni'; readonly eniId: string; readonly ifname: string; readonly table: number }
  /** Ours, of the whole node. */
  | { readonly kind: 'node' };

/** One line of `tke-eni watch`. */
export type WatchEvent = {
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  readonly source: 'kernel' | 'agent';
  readonly kind: WatchKind;
  /** '+' came, '-' went, '~' changed; of the agent: 'ok', or 'failed'. */
  readonly change: '+' | '-' | '~' | 'ok' | 'failed';
  readonly text: string;
  /** True when it bears our protocol number or is a link of ours. */
  readonly isOurs: boolean;
  readonly owner?: WatchOwner;
  /** What the agent did to the kernel, as the commands that do it by hand. */
  readonly operations?: readonly string[];
  /** Goes on without anybody changing anything: neighbour states, the kernel's own routes. */
  readonly isNoise: boolean;
};

/** Which events are wanted; all when empty. */
export type WatchFilter = {
  /** Part of 'namespace/name', an address, or the beginning of a container id. */
  readonly pod?: string;
  /** ENI id, its interface, or its table; Pods on it are included. */
  readonly eni?: string;
  readonly kinds: readonly string[];
  /** Noise too. */
  readonly isAll: boolean;
};

/** Tells whether an event is wanted. Lost events concern every filter. Pure. */
export function isWanted(event: WatchEvent, { pod, eni, kinds, isAll }: WatchFilter): boolean {
  if (event.kind === 'lost') return true;
  if (event.isNoise && !isAll) return false;
  if (kinds.length > 0 && !kinds.includes(event.kind)) return false;
  if (pod !== undefined && !isOfPod(event.owner, pod)) return false;
  return eni === undefined || isOfEni(event.owner, eni);
}

function isOfPod(owner: WatchOwner | undefined, word: string): boolean {
  if (owner?.kind !== 'pod') return false;
  const isId = word.length >= 4 && owner.containerId.startsWith(word);
  return owner.name.includes(word) || owner.ips.includes(word) || isId;
}

function isOfEni(owner: WatchOwner | undefined, word: string): boolean {
  if (owner?.kind === 'pod') return owner.eniId === word;
  return owner?.kind === 'eni' && [owner.eniId, owner.ifname, `${owner.table}`].includes(word);
}

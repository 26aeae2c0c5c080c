/** A device as kubelet is told of it: room for one Pod's address, none in particular. */
export type Device = { readonly id: string; readonly isHealthy: boolean };

/** What the number of devices depends on. Addresses are counted in one family: a pair is one. */
export type DeviceSupply = {
  /** ENIs x addresses per ENI; undefined when nobody says. */
  readonly quota: number | undefined;
  /** Most addresses that the node can have now; undefined when its subnets do not limit it. */
  readonly allocatable: number | undefined;
  /** Addresses that the node has. */
  readonly assigned: number;
  /** Attachments of Pods. */
  readonly inUse: number;
  /** Addresses without a Pod on ENIs that cannot serve. */
  readonly stranded: number;
};

/** How many devices there are, and how many of them must not be given out. */
export type DeviceCount = { readonly total: number; readonly unhealthy: number };

/**
 * Counts devices: the quota, less what the subnets do not give, never below what is in use. Unhealthy are as many as have
 * addresses that no Pod can get now; a Pod that runs keeps a healthy one, whatever its ENI. Pure.
 */
export function countDevices({ quota, allocatable, assigned, inUse, stranded }: DeviceSupply): DeviceCount {
  const most = quota ?? allocatable ?? assigned;
  const total = Math.max(inUse, Math.min(most, allocatable ?? most));
  return { total, unhealthy: Math.min(stranded, total - inUse) };
}

/** What the choice of devices depends on. */
export type DeviceChoice = {
  /** `eni-ip` names `eni-ip-0`, `eni-ip-1` … */
  readonly prefix: string;
  readonly count: DeviceCount;
  /** As kubelet was told last; empty at first. */
  readonly previous: readonly Device[];
  /** Ids that Pods hold, whoever named them; empty when nobody knows. */
  readonly held: ReadonlySet<string>;
};

/**
 * Chooses the ids. Those that Pods hold stay first, for a kubelet that was restarted may fail a Pod whose device is gone or
 * unhealthy; then those that kubelet knows; then the lowest. What goes is free, and of that the highest. Unhealthy are
 * free ones too: those that were, then the highest. Pure.
 * @see kubernetes/pkg/kubelet/cm/devicemanager/manager.go devicesToAllocate
 */
export function decideDevices({ prefix, count, previous, held }: DeviceChoice): readonly Device[] {
  const numberOf = (id: string): number => {
    const digits = id.startsWith(`${prefix}-`) ? id.slice(prefix.length + 1) : '';
    return /^(0|[1-9]\d{0,8})$/.test(digits) ? Number(digits) : Number.POSITIVE_INFINITY;
  };
  const byNumber = (a: string, b: string): number => compare(numberOf(a), numberOf(b)) || compare(a, b);
  const known = previous.map(({ id }) => id).filter((id) => !held.has(id));
  const kept = [...[...held].sort(byNumber), ...known.sort(byNumber)].slice(0, count.total);
  const ids = new Set(kept);
  for (let number = 0; ids.size < count.total; number++) ids.add(`${prefix}-${number}`);
  const wasUnhealthy = new Set(previous.filter(({ isHealthy }) => !isHealthy).map(({ id }) => id));
  const rank = (id: string): number => (held.has(id) ? 2 : wasUnhealthy.has(id) ? 0 : 1);
  const worst = [...ids].sort((a, b) => compare(rank(a), rank(b)) || byNumber(b, a));
  const unhealthy = new Set(worst.slice(0, count.unhealthy));
  return [...ids].sort(byNumber).map((id) => ({ id, isHealthy: !unhealthy.has(id) }));
}

function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A device as kubelet lists it: the right to one address for a Pod, but no particular address. */
export type Device = { readonly id: string; readonly isHealthy: boolean };

/**
 * What the number of devices depends on. Addresses are counted in one family: an IPv4 address with its IPv6 partner is
 * one.
 */
export type DeviceSupply = {
  /** ENIs x addresses per ENI; undefined when not known. */
  readonly quota: number | undefined;
  /** Maximum number of addresses that the node can have now; undefined when its subnets do not limit it. */
  readonly allocatable: number | undefined;
  /** Number of addresses that the node has. */
  readonly assigned: number;
  /** Number of attachments of Pods. */
  readonly inUse: number;
  /** Number of addresses without a Pod on ENIs that cannot serve. */
  readonly stranded: number;
};

/** The number of devices, and how many of them are unhealthy, so that kubelet must not give them to Pods. */
export type DeviceCount = { readonly total: number; readonly unhealthy: number };

/**
 * Counts devices: the quota, limited by what the subnets can give, and at least what is in use. As many are unhealthy
 * as there are addresses that no Pod can get now; the device of a running Pod stays healthy, whatever the state of its
 * ENI.
 */
export function countDevices({ quota, allocatable, assigned, inUse, stranded }: DeviceSupply): DeviceCount {
  const maxTotal = quota ?? allocatable ?? assigned;
  const total = Math.max(inUse, Math.min(maxTotal, allocatable ?? maxTotal));
  return { total, unhealthy: Math.min(stranded, total - inUse) };
}

/** Inputs of the selection of devices. */
type DeviceChoice = {
  /** Prefix of ids: `eni-ip` gives `eni-ip-0`, `eni-ip-1` … */
  readonly prefix: string;
  readonly count: DeviceCount;
  /** Devices as last reported to kubelet; empty at first. */
  readonly previous: readonly Device[];
  /** Ids that Pods hold, whoever named them; empty when not known. */
  readonly allocated: ReadonlySet<string>;
};

/**
 * Selects the ids. Those that Pods hold stay first: a restarted kubelet may fail a Pod whose device is missing or
 * unhealthy. Then come those that kubelet knows, then the lowest. Only ids without a Pod are removed, the highest
 * first. Unhealthy ids have no Pod either: first those that were unhealthy before, then the highest.
 * @see kubernetes/pkg/kubelet/cm/devicemanager/manager.go devicesToAllocate
 */
export function decideDevices({ prefix, count, previous, allocated }: DeviceChoice): readonly Device[] {
  const numberOf = (id: string): number => {
    const digits = id.startsWith(`${prefix}-`) ? id.slice(prefix.length + 1) : '';
    return /^(0|[1-9]\d{0,8})$/.test(digits) ? Number(digits) : Number.POSITIVE_INFINITY;
  };
  const byNumber = (a: string, b: string): number => compare(numberOf(a), numberOf(b)) || compare(a, b);
  const known = previous.map(({ id }) => id).filter((id) => !allocated.has(id));
  const retained = [...[...allocated].sort(byNumber), ...known.sort(byNumber)].slice(0, count.total);
  const ids = new Set(retained);
  for (let number = 0; ids.size < count.total; number++) ids.add(`${prefix}-${number}`);
  const wasUnhealthy = new Set(previous.filter(({ isHealthy }) => !isHealthy).map(({ id }) => id));
  const rank = (id: string): number => (allocated.has(id) ? 2 : wasUnhealthy.has(id) ? 0 : 1);
  const worst = [...ids].sort((a, b) => compare(rank(a), rank(b)) || byNumber(b, a));
  const unhealthy = new Set(worst.slice(0, count.unhealthy));
  return [...ids].sort(byNumber).map((id) => ({ id, isHealthy: !unhealthy.has(id) }));
}

function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

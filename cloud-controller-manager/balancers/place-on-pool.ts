import type { ListenerKey } from './target-place.ts';

/** A load balancer of a pool, and what is taken on it. */
export type PoolMember = {
  readonly loadBalancerId: string;
  /** Ports that listeners have or Services were given. */
  readonly taken: ReadonlySet<ListenerKey>;
};

/** What a Service needs. */
type PoolRequest = {
  readonly listeners: readonly { readonly protocol: 'TCP' | 'UDP'; readonly port: number }[];
  /** Whether ports are allotted; else each listener has the port of the Service. */
  readonly allots: boolean;
  /** What it was given before. It keeps that. */
  readonly given?: PoolPorts;
};

/** The port of the listener for each port of a Service. Absent: the same. */
export type PoolPorts = ReadonlyMap<ListenerKey, number>;

/** Where a Service is placed. */
type Placement = { readonly loadBalancerId: string; readonly ports: PoolPorts };

/** Ports that are allotted: above those of well-known services, below those of clients and node ports. */
const ALLOTTED = { min: 10_000, max: 29_999 } as const;

/**
 * Places a Service on the first load balancer of a pool that has all its ports free, and listeners left. Those with the most
 * listeners come first, so that few are needed. @returns undefined when none has
 */
export function placeOnPool(
  request: PoolRequest,
  members: readonly PoolMember[],
  maxListeners: number,
): Placement | undefined {
  const fullest = members.toSorted(
    (one, other) => other.taken.size - one.taken.size || (one.loadBalancerId < other.loadBalancerId ? -1 : 1),
  );
  for (const { loadBalancerId, taken } of fullest) {
    if (taken.size + request.listeners.length > maxListeners) continue;
    const ports = request.allots ? allotPorts(request, taken) : keepPorts(request, taken);
    if (ports !== undefined) return { loadBalancerId, ports };
  }
  return undefined;
}

/** Returns the ports that may have been allotted, of those that an annotation says were. */
export function allottedOf(ports: PoolPorts): PoolPorts {
  return new Map([...ports].filter(([, port]) => port >= ALLOTTED.min && port <= ALLOTTED.max));
}

/** Returns the port of the listener for a port of a Service. */
export function listenerPortOf(ports: PoolPorts | undefined, protocol: 'TCP' | 'UDP', port: number): number {
  return ports?.get(`${protocol}/${port}`) ?? port;
}

function keepPorts({ listeners }: PoolRequest, taken: ReadonlySet<ListenerKey>): PoolPorts | undefined {
  return listeners.some(({ protocol, port }) => taken.has(`${protocol}/${port}`)) ? undefined : new Map();
}

/** TCP and UDP of one port get one number. */
function allotPorts({ listeners, given }: PoolRequest, taken: ReadonlySet<ListenerKey>): PoolPorts | undefined {
  const ports = new Map<ListenerKey, number>();
  const used = new Set(taken);
  let next: number = ALLOTTED.min;
  const isFree = (number: number): boolean => !used.has(`TCP/${number}`) && !used.has(`UDP/${number}`);
  const byPort = Map.groupBy(listeners, ({ port }) => port);
  const keep = (key: ListenerKey, protocol: 'TCP' | 'UDP', number: number): void => {
    ports.set(key, number);
    used.add(`${protocol}/${number}`);
  };
  for (const { protocol, port } of listeners) {
    const before = given?.get(`${protocol}/${port}`);
    if (before !== undefined && !used.has(`${protocol}/${before}`)) keep(`${protocol}/${port}`, protocol, before);
  }
  for (const [port, its] of byPort) {
    const missing = its.filter(({ protocol }) => !ports.has(`${protocol}/${port}`));
    if (missing.length === 0) continue;
    while (next <= ALLOTTED.max && !isFree(next)) next += 1;
    if (next > ALLOTTED.max) return undefined;
    for (const { protocol } of missing) keep(`${protocol}/${port}`, protocol, next);
  }
  return ports;
}

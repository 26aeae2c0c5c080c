/**
 * Addresses of the node that a controller published as targets of load balancers, and how long those without a Pod have
 * waited.
 */
export type RegisteredAddresses = {
  /** Undefined: no controller publishes for this node, and nothing waits. */
  readonly published: ReadonlySet<string> | undefined;
  /** When each of them became idle, or was first seen idle; milliseconds since boot. */
  readonly idleSinceMs: ReadonlyMap<string, number>;
  /** Waited for longer than the limit; they count no more, until the list changes while another Pod has them. */
  readonly overdue: ReadonlySet<string>;
};

/** No controller publishes. */
export const NOTHING_REGISTERED: RegisteredAddresses = {
  published: undefined,
  idleSinceMs: new Map(),
  overdue: new Set(),
};

/**
 * Takes over the published list; undefined when there is none. Idempotent. A list that changes has a living writer: what
 * is overdue and has another Pod by now counts again. A list that no writer changes any more does not.
 * @param idle Addresses of the list before that have no Pod now.
 */
export function withPublished(
  known: RegisteredAddresses,
  ips: readonly string[] | undefined,
  idle: ReadonlyMap<string, unknown>,
): RegisteredAddresses {
  if (ips === undefined) return known.published === undefined ? known : NOTHING_REGISTERED;
  const published = new Set(ips);
  const { published: before, idleSinceMs } = known;
  if (before?.size === published.size && [...published].every((ip) => before.has(ip))) return known;
  return {
    published,
    idleSinceMs: new Map([...idleSinceMs].filter(([ip]) => published.has(ip))),
    overdue: new Set([...known.overdue].filter((ip) => published.has(ip) && idle.has(ip))),
  };
}

/**
 * Notes which of the published addresses have no Pod now, and ends the wait of those that waited for `limitMs`.
 * @param idle Idle addresses, with the time at which their last Pod released them where that is known.
 * @returns the new state, and what became overdue
 */
export function noteIdle(
  known: RegisteredAddresses,
  idle: ReadonlyMap<string, number | undefined>,
  { nowMs, limitMs }: { readonly nowMs: number; readonly limitMs: number },
): { readonly state: RegisteredAddresses; readonly ended: readonly string[] } {
  const { published = new Set<string>(), idleSinceMs: before, overdue } = known;
  const idleSinceMs = new Map(
    [...idle].flatMap(([ip, freedAtMs]) =>
      published.has(ip) ? [[ip, Math.min(nowMs, freedAtMs ?? before.get(ip) ?? nowMs)] as const] : [],
    ),
  );
  const ended = [...idleSinceMs].flatMap(([ip, sinceMs]) =>
    !overdue.has(ip) && nowMs - sinceMs >= limitMs ? [ip] : [],
  );
  const isSame =
    ended.length === 0 &&
    idleSinceMs.size === before.size &&
    [...idleSinceMs].every(([ip, at]) => before.get(ip) === at);
  if (isSame) return { state: known, ended };
  return { state: { ...known, idleSinceMs, overdue: new Set([...overdue, ...ended]) }, ended };
}

/** Returns the addresses that no other Pod may get now; undefined when no controller publishes. */
export function heldBack({ published, overdue }: RegisteredAddresses): ReadonlySet<string> | undefined {
  if (published === undefined || overdue.size === 0) return published;
  return new Set([...published].filter((ip) => !overdue.has(ip)));
}

/** Returns, for an ADD that found no address, what those wait for that load balancers still have, and what to do. */
export function describeRegistered(count: number, limitMs: number): string {
  const what = count === 1 ? 'address without a Pod is' : 'addresses without a Pod are';
  return `${count} ${what} still published as targets of load balancers; tke-cloud-controller-manager takes them out when it has deregistered them: see whether it runs, and the events of its Services. Each is free ${limitMs / HOUR_MS} h after its Pod at the latest (--load-balancer-wait)`;
}

const HOUR_MS = 3_600_000;

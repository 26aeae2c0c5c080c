import type { ClaimRequest, ClaimSource } from '../../decide/claim-request.ts';
import type { ClaimDecision } from './claim-decision.ts';
import type { ClaimLocation, ClaimPod, ClaimView } from './claim-view.ts';

/** An address that has been Releasing for so long without being taken over is unassigned there. */
const MIGRATION_WAIT_MS = 20_000;

/** The address that a claim has or is to have; `ip` absent: any. */
export type ClaimAddress = {
  readonly ip: string | undefined;
  /** Absent: any of the node's. */
  readonly subnetIds: readonly string[] | undefined;
};

/** Decides the requests of a claim that ends: no Pod may use its address, and every node unassigns it. */
export function decideFreeing(view: ClaimView, mode: ClaimRequest['mode']): ReadonlyMap<string, ClaimRequest> {
  return byNode(view.locations, ({ nodeName, ip }) => ({
    ...baseOf(view, mode, ip),
    goal: 'free',
    ...takeOver(view, nodeName),
  }));
}

/** Decides the requests of a claim that no Pod uses now: its address stays where it is. */
export function decideRetaining(view: ClaimView, mode: ClaimRequest['mode']): ReadonlyMap<string, ClaimRequest> {
  return byNode(view.locations, ({ ip, nodeName, isReleasing }) =>
    // A released address cannot stay: it is unassigned, and is on no ENI until a Pod comes.
    isReleasing
      ? { ...baseOf(view, mode, ip), goal: 'elsewhere', willMigrate: isMigrating(view), ...takeOver(view, nodeName) }
      : { ...baseOf(view, mode, ip), goal: 'keep' },
  );
}

/** Decides the requests of a claim whose address leaves every ENI: it is reserved in the VPC instead. */
export function decideLeaving(view: ClaimView, mode: ClaimRequest['mode']): ReadonlyMap<string, ClaimRequest> {
  return byNode(view.locations, ({ ip, nodeName }) => ({
    ...baseOf(view, mode, ip),
    goal: 'elsewhere',
    willMigrate: isMigrating(view),
    ...takeOver(view, nodeName),
  }));
}

/** Decides the requests of a claim whose Pod is on a node that may have the address. */
export function decideServing(
  view: ClaimView,
  pod: ClaimPod,
  address: ClaimAddress,
): ReadonlyMap<string, ClaimRequest> {
  const { mode, securityGroupIds } = pod.rule;
  const others = view.locations.filter(({ nodeName }) => nodeName !== pod.nodeName);
  const source = sourceOf(view, others);
  const requests = new Map(
    byNode(others, (location) => ({
      ...baseOf(view, mode, location.ip),
      goal: 'elsewhere',
      willMigrate: willMigrate(view, pod.nodeName, location),
      ...takeOver(view, location.nodeName),
    })),
  );
  requests.set(pod.nodeName, {
    ...baseOf(view, mode, address.ip),
    goal: 'here',
    podUid: pod.uid,
    ...(address.subnetIds === undefined ? {} : { subnetIds: address.subnetIds }),
    ...(source === undefined ? {} : { source }),
    ...(securityGroupIds === undefined ? {} : { securityGroupIds }),
  });
  return requests;
}

/**
 * Finds the addresses that belong to a claim, on an ENI or on none: if the cloud assigns one to a node by chance, it
 * belongs to the claim. A claim that ends has none any more: otherwise an address that a pool gets by chance would be
 * marked for it, unassigned at once, and assigned again.
 */
export function selectReservedIps(
  { vips, locations }: Pick<ClaimView, 'vips' | 'locations'>,
  decision: Pick<ClaimDecision, 'claim' | 'vips' | 'requests'>,
): readonly string[] {
  if (isEnding(decision)) return [];
  const written = decision.vips.flatMap((write) => (write.kind === 'put' ? [write.desired.ip] : []));
  const ended = new Set(decision.vips.flatMap((write) => (write.kind === 'end' ? [write.vip.spec.ip] : [])));
  const remaining = vips.map(({ spec }) => spec.ip).filter((ip) => !ended.has(ip));
  const onEnis = locations.flatMap(({ ip, mode }) => (ip === undefined || mode === 'direct-eni' ? [] : [ip]));
  return [...new Set([...written, ...remaining, ...onEnis])].sort();
}

/** Reports whether the claim ends: every node unassigns its address. */
function isEnding({ claim, requests }: Pick<ClaimDecision, 'claim' | 'requests'>): boolean {
  if (claim?.kind === 'finish') return true;
  if (claim?.kind === 'put' && claim.desired.status.phase === 'Releasing') return true;
  return requests.size > 0 && [...requests.values()].every(({ goal }) => goal === 'free');
}

function baseOf({ key }: ClaimView, mode: ClaimRequest['mode'], ip: string | undefined) {
  return { key, mode, ...(ip === undefined ? {} : { ip }) };
}

function byNode(
  locations: readonly ClaimLocation[],
  requestOf: (location: ClaimLocation) => ClaimRequest,
): ReadonlyMap<string, ClaimRequest> {
  return new Map(locations.map((location) => [location.nodeName, requestOf(location)] as const));
}

function takeOver({ nodeOf, takeOverAfterMs }: ClaimView, nodeName: string): Pick<ClaimRequest, 'mayTakeOver'> {
  const { unreachableForMs } = nodeOf(nodeName);
  return unreachableForMs > 0 && unreachableForMs >= takeOverAfterMs ? { mayTakeOver: true } : {};
}

function sourceOf({ calls }: ClaimView, [place]: readonly ClaimLocation[]): ClaimSource | undefined {
  if (place === undefined) return undefined;
  const { nodeName, eniId, isAttached, isReleasing } = place;
  // An address that its own node is unassigning must not be moved as well.
  const isLeaving = calls.some((call) => call.action === 'UnassignPrivateIpAddresses' && call.nodeName === nodeName);
  return { nodeName, eniId, isAttached, isReleased: isReleasing && !isLeaving };
}

function isMigrating({ calls }: ClaimView): boolean {
  return calls.some(({ action }) => action === 'MigratePrivateIpAddress');
}

function willMigrate(view: ClaimView, target: string, location: ClaimLocation): boolean {
  const isThere = view.locations.some(({ nodeName }) => nodeName === target);
  if (isThere || isMigrating(view)) return true;
  const hasFreeSlot =
    location.subnetId !== undefined && view.nodeOf(target).subnetsWithFreeSlots.has(location.subnetId);
  return hasFreeSlot && location.isAttached && view.releasingForMs < MIGRATION_WAIT_MS;
}

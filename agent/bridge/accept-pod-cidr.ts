import { networkPrefix } from '../../dataplane/ip-prefix.ts';
import type { Journal } from '../journal/journal-content.ts';
import type { Metrics } from '../observability/metrics.ts';
import { podCidrSupply } from '../pod-cidr/pod-cidr-supply.ts';
import { type OccupiedNetwork, refusePodCidrs } from '../pod-cidr/refuse-pod-cidrs.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts } from '../state/ports.ts';
import { holdAddresses } from './hold-addresses.ts';

/** Dependencies of accepting a podCIDR. */
export type PodCidrDeps = Pick<AgentParts, 'state' | 'events' | 'log'> & {
  readonly journal: Pick<Journal, 'putPodCidrs'>;
  readonly metrics: Pick<Metrics, 'journalErrors'>;
  /** Called when the kernel may have to follow. */
  readonly changed: (cause: string) => void;
};

/**
 * Puts the blocks of the node's Node object in force. A block that is no longer one of them serves no new Pod, and stays
 * routed while leases of it live. The journal keeps the blocks for a start without the API server.
 */
export function acceptPodCidrs(deps: PodCidrDeps, cidrs: readonly string[]): void {
  const { state, journal, metrics, events, log } = deps;
  const next = cidrs.map(networkPrefix);
  if (next.join() === state.podCidrs.join()) return;
  const before = state.podCidrs;
  const refused = state.refusedBlocks;
  usePodCidrs(state, next);
  reportRefusals(deps, refused);
  const living = [...state.leases.values()].filter(({ block }) => block !== undefined && before.includes(block.cidr));
  log.info('podCIDR', { podCidrs: next, before, leases: living.length });
  if (before.length > 0) {
    const pods = living.length === 0 ? '' : `; ${living.length} Pods keep addresses of the former one until they end`;
    events.report(
      'Warning',
      'PodCIDRChanged',
      `podCIDR is ${next.join(', ') || 'none'}, was ${before.join(', ')}${pods}`,
    );
  }
  try {
    journal.putPodCidrs(next);
  } catch (error) {
    metrics.journalErrors.inc();
    log.error('the podCIDR was not written to the journal, continuing', { error });
  }
  deps.changed('podCIDR');
}

/** Gives these blocks to the pool of GlobalRoute Pods, without those that overlap an occupied network. */
export function usePodCidrs(state: NodeState, cidrs: readonly string[]): void {
  state.podCidrs = cidrs;
  state.refusedBlocks = refusePodCidrs(cidrs, state.occupied);
  state.isBlockFull = false;
  state.bridgePool.applySupply(podCidrSupply(state.acceptedBlocks()));
  holdAddresses(state, state.heldIps);
  state.changed.notify();
}

/**
 * Compares the blocks of the node with networks that are in use, each time that these change. A block that overlaps one serves
 * no new Pod; Pods that have addresses of it keep them.
 */
export function noteOccupied(
  deps: Pick<PodCidrDeps, 'state' | 'events' | 'log'>,
  occupied: readonly OccupiedNetwork[],
): void {
  const { state } = deps;
  if (JSON.stringify(occupied) === JSON.stringify(state.occupied)) return;
  const before = state.refusedBlocks;
  state.occupied = occupied;
  if ([...refusePodCidrs(state.podCidrs, occupied)].join() === [...before].join()) return;
  usePodCidrs(state, state.podCidrs);
  reportRefusals(deps, before);
}

/** Reports each refusal once, as long as it lasts. */
function reportRefusals(
  { state, events, log }: Pick<PodCidrDeps, 'state' | 'events' | 'log'>,
  before: ReadonlyMap<string, string>,
): void {
  for (const [cidr, why] of state.refusedBlocks) {
    if (before.get(cidr) === why) continue;
    events.report('Warning', 'PodCIDRRefused', `${why}: no new Pod gets an address of it, those that have one keep it`);
    log.error('a podCIDR is refused', { cidr, why });
  }
  for (const cidr of before.keys()) {
    if (!state.refusedBlocks.has(cidr) && state.podCidrs.includes(cidr))
      log.info('a podCIDR is refused no more', { cidr });
  }
}

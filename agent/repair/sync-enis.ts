import type { EniPlace } from '../../dataplane/find-nic.ts';
import type { EniNetwork } from '../../dataplane/network.ts';
import { ON_LINK_ENI_ID, type SupplyEni } from '../journal/supply.ts';
import type { HostLink } from '../node/host-link.ts';
import type { NodeState } from '../state/node-state.ts';
import type { AgentParts } from '../state/ports.ts';
import { absentEni, locateEnis, withPodIps } from './locate-enis.ts';

type SyncDeps = Pick<AgentParts, 'state' | 'journal' | 'log'>;

/**
 * Finds the supply's ENIs among the links and updates `state`. Journals the records of new ENIs before the kernel is
 * changed, and erases records that are not needed any more. Returns the ENIs that the plan should contain. Idempotent.
 */
export function syncEnis({ state, journal, log }: SyncDeps, links: readonly HostLink[]): readonly EniNetwork[] {
  const supplied = suppliedEnis(state);
  const { present, missing, newRecords, refused } = locateEnis(supplied, links, state.eniRecords, lastPlan(state));
  for (const record of newRecords) {
    journal.putEni(record);
    state.eniRecords.set(record.eniId, record);
    log.info('ENI found', { ...record });
  }
  const before = new Set(state.enis.keys());
  state.enis.clear();
  for (const eni of present) state.enis.set(eni.eniId, eni);
  for (const eni of [...missing, ...refused]) {
    if (before.has(eni.eniId)) log.warn('ENI is gone', { eniId: eni.eniId, mac: eni.mac });
    const text = missing.includes(eni) ? `no link with MAC ${eni.mac}` : 'no slot left for one more ENI';
    state.eniProblems.set(eni.eniId, { eniId: eni.eniId, kind: 'missing', text });
    state.readyEnis.delete(eni.eniId);
  }
  const used = eraseUnused({ state, journal, log });
  return withUplinks(state, [...present, ...missing.flatMap((eni) => absentButUsed(state, used, eni))]);
}

/** Returns the ENIs that the plan should contain, as `syncEnis` does, without a change of journal or `state`. */
export function listPlannedEnis(state: NodeState, links: readonly HostLink[]): readonly EniNetwork[] {
  const { present, missing } = locateEnis(suppliedEnis(state), links, state.eniRecords, lastPlan(state));
  const used = usedEnis(state);
  return withUplinks(state, [...present, ...missing.flatMap((eni) => absentButUsed(state, used, eni))]);
}

function lastPlan({ plannedEnis, enisBefore }: NodeState): readonly EniPlace[] {
  return [...plannedEnis, ...enisBefore];
}

/** Adds the addresses of Pods that another program wires. The rules of a leased address are those of its Pod. */
function withUplinks(state: NodeState, planned: readonly EniNetwork[]): readonly EniNetwork[] {
  if (state.role !== 'uplinks') return planned;
  const leased = new Set([...state.leases.values()].flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
  return withPodIps(planned, suppliedEnis(state), (ip) => leased.has(ip));
}

function absentButUsed(state: NodeState, used: ReadonlySet<string>, eni: SupplyEni): readonly EniNetwork[] {
  const record = state.eniRecords.get(eni.eniId);
  return record !== undefined && used.has(eni.eniId) ? [absentEni(eni, record)] : [];
}

/**
 * Erases ENIs that are neither supplied nor used; their kernel state is then pruned. Returns the ids of the used ones.
 */
function eraseUnused({ state, journal, log }: SyncDeps): ReadonlySet<string> {
  const supplied = new Set(suppliedEnis(state).map(({ eniId }) => eniId));
  const used = usedEnis(state);
  // Without any supply it is not known that an ENI was removed.
  if (state.supply === undefined) return used;
  for (const eniId of [...state.eniRecords.keys()]) {
    if (supplied.has(eniId) || used.has(eniId)) continue;
    journal.eraseEni(eniId);
    state.eniRecords.delete(eniId);
    log.info('ENI record erased', { eniId });
  }
  for (const { eniId, kind } of [...state.eniProblems.values()])
    if (!supplied.has(eniId) && kind !== 'refused') state.eniProblems.delete(eniId);
  for (const eniId of [...state.readyEnis]) if (!supplied.has(eniId)) state.readyEnis.delete(eniId);
  return used;
}

/** Lists the ENIs of the supply, without those that were retained for their Pods only and have no Pod left. */
function suppliedEnis(state: NodeState): readonly SupplyEni[] {
  const used = usedEnis(state);
  return (state.supply?.enis ?? []).filter(
    ({ eniId, attached, draining, addresses }) =>
      eniId !== ON_LINK_ENI_ID && (used.has(eniId) || attached || !draining || addresses.length > 0),
  );
}

/** ENIs whose addresses Pods have, or may have: of Pods that another program wires it is not known which. */
function usedEnis({ role, supply, leases }: NodeState): ReadonlySet<string> {
  const ofOthers = role === 'uplinks' ? (supply?.enis ?? []).filter(({ addresses }) => addresses.length > 0) : [];
  return new Set([...leases.values(), ...ofOthers].map(({ eniId }) => eniId));
}

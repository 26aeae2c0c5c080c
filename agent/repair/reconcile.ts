import { type Conflict, isBlocking } from '../../dataplane/conflict.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { EniNetwork, NodeNetwork } from '../../dataplane/network.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { type Operation, renderOperation, summarizeOperation } from '../../dataplane/operation.ts';
import { leaseKey } from '../journal/lease.ts';
import type { FoundStateRecorder } from '../node/found-state.ts';
import type { HostLink } from '../node/host-link.ts';
import type { PlannedListener } from '../node/node-record-writer.ts';
import { findOwner, type OperationOwner, reliesOn } from '../recorder/operation-scope.ts';
import type { AgentParts } from '../state/ports.ts';
import { assignedIps } from './assigned-ips.ts';
import { countEnis, countFastLinks } from './count-pass.ts';
import { desiredState } from './desired-state.ts';
import type { FightDetector } from './fight-detector.ts';
import { findRenamedLeases } from './find-renamed-leases.ts';
import type { ForeignChanges } from './foreign-changes.ts';
import { locateExclusiveNics, type NicKernel, type ReturnedNic } from './locate-exclusive-nics.ts';
import { objectOf } from './object-of.ts';
import { restoreLeftLinks } from './restore-left-links.ts';
import { syncEnis } from './sync-enis.ts';

/** The functions of the node's kernel that reconciling needs. */
export type HostKernel = NicKernel & {
  /** Links of the host's namespace. */
  links(): readonly HostLink[];
  /** A setting below /proc/sys; undefined when there is none. */
  sysctl(path: readonly string[]): string | undefined;
  /** Whether TCP connections that live can be marked, so that they go on without a setting that they need. */
  canKeepConnections(): boolean;
  /** Reads the nftables table; the result is passed to `observe`. Runs nft, a child process, after `invalidateNft` only. */
  readNft(desired: HostState): Promise<ObservedHost['nft']>;
  /** Makes the next `readNft` read the kernel. */
  invalidateNft(): void;
  /** Makes the next `observe` read the traffic filters of a link, or of all links, from the kernel. */
  invalidateFilters(ifindex?: number): void;
  /** Forgets the traffic filters of a link that left the namespace. */
  forgetFilters(ifindex: number): void;
  /** Observes the rest, in one go without yielding. */
  observe(desired: HostState, nft: ObservedHost['nft']): ObservedHost;
  /** Applies the operations in order. One that fails does not stop the others, but nothing is removed after it. */
  apply(operations: readonly Operation[], onDone: (operation: Operation) => void): Promise<readonly FailedOperation[]>;
};

/** An operation that the kernel refused. */
export type FailedOperation = { readonly operation: Operation; readonly error: unknown };

/** Dependencies of reconciling. */
export type ReconcileDeps = Pick<AgentParts, 'clock' | 'log' | 'metrics' | 'state' | 'journal' | 'operationLog'> & {
  readonly kernel: HostKernel;
  /** What we set on the node, and what was there before. */
  readonly found: Pick<FoundStateRecorder, 'current' | 'forget'>;
  readonly fights: FightDetector;
  readonly foreignChanges: ForeignChanges;
  /** The node as planned now; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
  /** Called when another program keeps undoing an operation of ours. */
  readonly fightStarted?: (request: string) => void;
  /** Receives the plan of the node, after the pass. */
  readonly planned?: PlannedListener;
};

/** The result of one pass. */
export type ReconcileReport = {
  readonly done: readonly Operation[];
  readonly failed: readonly FailedOperation[];
  /** Left out: another program keeps undoing them, or they rely on what is left out. */
  readonly paused: readonly Operation[];
  readonly conflicts: readonly Conflict[];
  /** True when an ADD or DEL changed the kernel meanwhile: another pass is due. */
  readonly isStale: boolean;
  /** Another pass is due in so many milliseconds: a wait ends, or an object counts as calm. */
  readonly recheckInMs?: number;
};

/** The report of a pass that had nothing to do. */
export const NOTHING_DONE: ReconcileReport = { done: [], failed: [], paused: [], conflicts: [], isStale: false };

/**
 * Makes the kernel what it should be: finds the ENIs, plans the node, observes, compares, applies. Idempotent: on a
 * kernel that is as planned it does nothing. Foreign state is reported and left alone.
 * @param cause What called for the pass, for the log.
 */
export async function reconcile(deps: ReconcileDeps, cause: string): Promise<ReconcileReport> {
  const { state, kernel } = deps;
  const node = deps.nodeNetwork();
  if (node === undefined) return NOTHING_DONE;
  const startedMs = deps.clock.monotonicMs();
  // The whole text, such as 'rule del by ip (pid 4711)', is for the log; as first words there are only few.
  deps.metrics.passes.inc({ trigger: cause.split(/[ ,]/, 1)[0] ?? cause });
  const nft = await kernel.readNft(planned(deps, node, kernel.links()));
  // No await from here to the first operation: no ADD or DEL comes between planning, observing and applying.
  const links = kernel.links();
  const desired = planned(deps, node, links);
  const observed = kernel.observe(desired, nft);
  const { operations: differing, conflicts } = diffHost(desired, observed);
  const idle = locateExclusiveNics(state, kernel, links);
  const left = leftOperations(deps, desired, observed, links, node.primary.ifindex);
  const operations = [...idle.operations, ...differing, ...left];
  const nameObject = namerOf(links);
  const allowed = withoutPaused(deps, operations, nameObject, cause);
  const generation = state.kernelGeneration;
  const done: Operation[] = [];
  const failed = await kernel.apply(allowed, (operation) => {
    done.push(operation);
    const nowMs = deps.clock.monotonicMs();
    deps.foreignChanges.noteDone(nameObject(operation), nowMs);
    deps.fights.noteDone(nameObject(operation), nowMs);
    deps.log.info('kernel changed', { request: renderOperation(operation), cause });
  });
  for (const { operation, error } of failed) {
    deps.log.error('kernel change failed', { request: renderOperation(operation), cause, error });
  }
  resetReturnedNics(deps, idle.returned);
  reportConflicts(deps, conflicts);
  updateReadiness(deps, conflicts, failed, node.primary.ifname);
  count(deps, operations, done);
  deps.metrics.fastPathLinks.set(countFastLinks(observed, done));
  deps.planned?.({ ...node, ruleMode: state.ruleMode, assignedIps: assignedIps(state) }, state.plannedEnis);
  const durationMs = deps.clock.monotonicMs() - startedMs;
  deps.operationLog.repaired({ cause, durationMs, done, failed, leases: state.leases.values() });
  const paused = leftOut(operations, allowed);
  const isStale = generation !== state.kernelGeneration && allowed.length > 0;
  return { done, failed, paused, conflicts, isStale, ...recheck(deps) };
}

/**
 * Decides what is undone on links that are no ENI any more, and erases the records of what is over. Nothing without a
 * supply, or while some object could not be read: then it is not known what is still planned.
 */
function leftOperations(
  { state, kernel, found }: ReconcileDeps,
  desired: HostState,
  observed: ObservedHost,
  links: readonly HostLink[],
  primaryIfindex: number,
): readonly Operation[] {
  if (state.supply === undefined || (observed.unreadable ?? []).length > 0) return [];
  const inUse = new Set([primaryIfindex, ...[...state.exclusiveNics.values()].map(({ ifindex }) => ifindex)]);
  const { addressesOn, sysctl, canKeepConnections } = kernel;
  const view = { links, addressesOn, sysctl, canKeepConnections };
  const { operations, over } = restoreLeftLinks(found.current(), desired, inUse, view);
  found.forget(over);
  return operations;
}

/** Says when the next wait ends; forgets what is long over. */
function recheck({ fights, foreignChanges, clock }: ReconcileDeps): Pick<ReconcileReport, 'recheckInMs'> {
  const nowMs = clock.monotonicMs();
  fights.removeExpired(nowMs);
  foreignChanges.removeExpired(nowMs);
  const nextMs = fights.nextChangeMs(nowMs);
  return nextMs === undefined ? {} : { recheckInMs: nextMs - nowMs };
}

/** Names the kernel object of an operation, for the links of this pass. */
export function namerOf(links: readonly HostLink[]): (operation: Operation) => string {
  const ifindexes = new Map(links.map(({ ifname, ifindex }) => [ifname, ifindex]));
  return (operation) => objectOf(operation, (ifname) => ifindexes.get(ifname));
}

/**
 * Resets interfaces that returned by themselves: their Pod's namespace was deleted without a DEL, or after one that
 * could not wait for them.
 */
function resetReturnedNics({ state, kernel, log }: ReconcileDeps, returned: readonly ReturnedNic[]): void {
  for (const { eniId, link, nic } of returned) {
    try {
      const now = kernel.resetNic(nic);
      if (now !== undefined) state.exclusiveNics.set(eniId, now);
      state.formerNics.delete(eniId);
      log.info('interface of an exclusive ENI came back', { link: link.ifname, mac: link.mac });
    } catch (error) {
      log.error('interface of an exclusive ENI cannot be put to rest', { link: link.ifname, mac: link.mac, error });
    }
  }
}

/** Plans the desired state of this moment; journals the records of new ENIs, and the names of links that were renamed. */
function planned(deps: ReconcileDeps, node: NodeNetwork, links: readonly HostLink[]): HostState {
  followNames(deps, links);
  const enis = syncEnis(deps, links);
  deps.state.plannedEnis = enis;
  return desiredState(deps.state, { ...node, ruleMode: deps.state.ruleMode }, enis, links);
}

function followNames({ state, journal, log, metrics }: ReconcileDeps, links: readonly HostLink[]): void {
  for (const lease of findRenamedLeases(state.leases.values(), links)) {
    const key = leaseKey(lease);
    log.warn('another program renamed the link of a Pod', { key, name: lease.hostVeth?.name });
    state.leases.set(key, lease);
    try {
      journal.putLease(lease);
    } catch (error) {
      metrics.journalErrors.inc();
      log.warn('the name of a link was not written to the journal', { key, error });
    }
  }
}

/** Leaves out what has to wait because another program keeps undoing it, and counts the rest as repaired once more. */
function withoutPaused(
  deps: ReconcileDeps,
  operations: readonly Operation[],
  nameObject: (operation: Operation) => string,
  cause: string,
): readonly Operation[] {
  deps.foreignChanges.noteDifferent(new Set(operations.map(nameObject)));
  return withoutReliant(
    operations,
    operations.filter((operation) => mayApply(deps, operation, nameObject(operation), cause)),
  );
}

/** Leaves out removals that rely on what is not in `allowed`: a removal comes after what replaces it. */
export function withoutReliant(operations: readonly Operation[], allowed: readonly Operation[]): readonly Operation[] {
  const undone = leftOut(operations, allowed);
  return undone.length === 0 ? allowed : allowed.filter((operation) => !reliesOn(operation, undone));
}

/** Returns the operations that are not in `allowed`. */
export function leftOut(operations: readonly Operation[], allowed: readonly Operation[]): readonly Operation[] {
  if (operations.length === allowed.length) return [];
  const allowedSet = new Set(allowed);
  return operations.filter((operation) => !allowedSet.has(operation));
}

function mayApply(deps: ReconcileDeps, operation: Operation, object: string, cause: string): boolean {
  const nowMs = deps.clock.monotonicMs();
  const changedAtMs = deps.foreignChanges.changedAtMs(object, operation, nowMs);
  const { verdict, isAlarm } = deps.fights.evaluate(object, operation, changedAtMs, nowMs);
  if (isAlarm) {
    const request = renderOperation(operation);
    deps.metrics.fightsStarted.inc({ kind: operation.kind });
    const summary = summarizeOperation(operation);
    deps.fightStarted?.(summary);
    deps.operationLog.report('fight', () => ({ text: `another program keeps undoing: ${summary}`, isFailure: true }));
    deps.log.warn('somebody keeps undoing this change, leaving it alone for a while', { request, cause });
  }
  return verdict === 'repair';
}

function reportConflicts(deps: ReconcileDeps, conflicts: readonly Conflict[]): void {
  const { state } = deps;
  // A missing link is reported as the problem of its ENI.
  const texts = conflicts.filter(({ kind }) => kind !== 'link').map(({ message }) => message);
  const known = new Set(state.reportedConflicts);
  for (const text of texts) {
    if (known.has(text)) continue;
    deps.log.warn('conflict with foreign kernel state', { conflict: text });
    deps.operationLog.report('conflict', () => ({ text, isFailure: true }));
  }
  const now = new Set(texts);
  for (const text of known) {
    if (now.has(text)) continue;
    deps.log.info('conflict is over', { conflict: text });
    deps.operationLog.report('conflict', () => ({ text: `over: ${text}` }));
  }
  state.reportedConflicts = texts;
  state.conflicts = conflicts.filter(isBlocking).map(({ message }) => message);
  deps.metrics.conflicts.set(texts.length);
}

/**
 * Updates which ENIs are ready: the link exists, its own operations succeeded and stand, and its table has no foreign
 * entries.
 */
function updateReadiness(
  deps: ReconcileDeps,
  conflicts: readonly Conflict[],
  failed: readonly FailedOperation[],
  primaryIfname: string,
): void {
  const { state } = deps;
  const before = new Set(state.readyEnis);
  const notCalm = notCalmOf(deps, primaryIfname);
  state.undone = notCalm.node;
  const refused = failed.filter(({ operation }) => isOfNoPod(findOwner(operation, state, primaryIfname)));
  state.readyEnis.clear();
  for (const eni of state.enis.values()) {
    const problem = problemOf(eni, conflicts, refused, notCalm);
    // Refused, and here for its Pods alone: that it works for them does not end the refusal.
    const isRefused = state.eniProblems.get(eni.eniId)?.kind === 'refused';
    if (problem === undefined) {
      if (!isRefused) state.eniProblems.delete(eni.eniId);
      state.readyEnis.add(eni.eniId);
      if (!before.has(eni.eniId))
        deps.log.info('ENI is ready', { eniId: eni.eniId, link: eni.ifname, table: eni.table });
    } else {
      if (!isRefused) state.eniProblems.set(eni.eniId, { eniId: eni.eniId, ...problem });
      if (before.has(eni.eniId)) deps.log.warn('ENI is not ready', { eniId: eni.eniId, reason: problem.text });
    }
  }
  const counts = countEnis(state);
  for (const [eniState, count] of Object.entries(counts ?? {})) deps.metrics.enis.set({ state: eniState }, count);
  state.changed.notify();
}

function isOfNoPod(owner: OperationOwner): boolean {
  return owner === 'node' || owner.pods.size === 0;
}

/** What other programs keep undoing, by whom it serves. */
type NotCalm = { readonly node: string | undefined; readonly enis: ReadonlyMap<string, string> };

function notCalmOf({ fights, state, clock }: ReconcileDeps, primaryIfname: string): NotCalm {
  const enis = new Map<string, string>();
  const pods = new Map<string, string>();
  let node: string | undefined;
  for (const operation of fights.notCalm(clock.monotonicMs())) {
    const text = `another program keeps undoing: ${summarizeOperation(operation)}`;
    const owner = findOwner(operation, state, primaryIfname);
    if (owner === 'node') {
      node ??= text;
      continue;
    }
    for (const eniId of owner.eniIds) if (!enis.has(eniId)) enis.set(eniId, text);
    for (const [key, eniId] of owner.pods) {
      // What is undone of one Pod is that Pod's; of several it may be of any.
      const first = pods.get(eniId) ?? key;
      pods.set(eniId, first);
      if (first !== key && !enis.has(eniId)) enis.set(eniId, text);
    }
  }
  return { node, enis };
}

function problemOf(
  { eniId, table, ifindex }: EniNetwork,
  conflicts: readonly Conflict[],
  failed: readonly FailedOperation[],
  notCalm: NotCalm,
): { readonly kind: 'conflict' | 'undone'; readonly text: string } | undefined {
  const at = conflicts.find((conflict) => isBlocking(conflict) && conflict.at?.table === table)?.at;
  if (at !== undefined) return { kind: 'conflict', text: `table ${table} is used by others: "${at.shown}"` };
  const undone = notCalm.enis.get(eniId) ?? notCalm.node;
  if (undone !== undefined) return { kind: 'undone', text: undone };
  const refused = failed.find(({ operation }) => touches(operation, table, ifindex));
  return refused === undefined ? undefined : { kind: 'conflict', text: `cannot be set up: ${String(refused.error)}` };
}

function touches(operation: Operation, table: number, ifindex: number): boolean {
  switch (operation.kind) {
    case 'replace-route':
      return operation.route.table === table;
    case 'add-rule':
      return operation.rule.table === table;
    case 'add-address':
      return operation.address.ifindex === ifindex;
    case 'set-link':
      return operation.ifindex === ifindex;
    case 'load-nft':
      return true;
    default:
      return false;
  }
}

function count(deps: ReconcileDeps, found: readonly Operation[], done: readonly Operation[]): void {
  for (const [kind, group] of Map.groupBy(found, ({ kind }) => kind)) deps.metrics.drift.inc({ kind }, group.length);
  for (const [kind, group] of Map.groupBy(done, ({ kind }) => kind)) deps.metrics.repairs.inc({ kind }, group.length);
  deps.metrics.fights.set(deps.fights.contested(deps.clock.monotonicMs()).length);
}

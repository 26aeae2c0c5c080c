import type { Conflict } from '../../dataplane/conflict.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { NodeNetwork } from '../../dataplane/network.ts';
import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { findReturnedNics, locateDirectNics, type NicKernel } from '../direct/locate-direct-nics.ts';
import type { HostLink } from '../eni/locate-enis.ts';
import { syncEnis } from '../eni/sync-enis.ts';
import type { Journal } from '../journal/journal-content.ts';
import type { PlannedListener } from '../node/node-record-writer.ts';
import type { NodeState } from '../node-state.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { OperationLog } from '../ops/operation-log.ts';
import { desiredState } from './desired-state.ts';
import type { FightDetector } from './fight-detector.ts';

/** The functions of the node's kernel that reconciling needs. */
export type HostKernel = NicKernel & {
  /** Links of the host's namespace. */
  links(): readonly HostLink[];
  /** Reads the nftables table; the result is passed to `observe`. Runs nft, a child process, after `invalidateNft` only. */
  readNft(desired: HostState): Promise<ObservedHost['nft']>;
  /** Makes the next `readNft` read the kernel. */
  invalidateNft(): void;
  /** Observes the rest, in one go without yielding. */
  observe(desired: HostState, nft: ObservedHost['nft']): ObservedHost;
  /** Applies the operations in order. One that fails does not stop the others, but nothing is removed after it. */
  apply(operations: readonly Operation[], onDone: (operation: Operation) => void): Promise<readonly FailedOperation[]>;
};

/** An operation that the kernel refused. */
export type FailedOperation = { readonly operation: Operation; readonly error: unknown };

/** Dependencies of reconciling. */
export type ReconcileDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly state: NodeState;
  readonly journal: Journal;
  readonly kernel: HostKernel;
  readonly fights: FightDetector;
  /** The node as planned now; undefined while it has no primary interface. */
  readonly nodeNetwork: () => NodeNetwork | undefined;
  readonly operationLog: OperationLog;
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
};

const NOTHING: ReconcileReport = { done: [], failed: [], paused: [], conflicts: [], isStale: false };

/** Conflicts that stop packets; others are worth a warning only. */
const BLOCKING: ReadonlySet<Conflict['kind']> = new Set(['rule', 'route', 'table', 'mark']);

/**
 * Makes the kernel what it should be: finds the ENIs, plans the node, observes, compares, applies. Idempotent: on a
 * kernel that is as planned it does nothing. Foreign state is reported and left alone.
 * @param cause What called for the pass, for the log.
 */
export async function reconcile(deps: ReconcileDeps, cause: string): Promise<ReconcileReport> {
  const { state, kernel } = deps;
  const node = deps.nodeNetwork();
  if (node === undefined) return NOTHING;
  const startedMs = deps.clock.monotonicMs();
  // The whole text, such as 'rule del by port 4711', is for the log; as first words there are only few.
  deps.metrics.pass(cause.split(/[ ,]/, 1)[0] ?? cause);
  const nft = await kernel.readNft(planned(deps, node, kernel.links()));
  // No await from here to the first operation: no ADD or DEL comes between planning, observing and applying.
  const links = kernel.links();
  const desired = planned(deps, node, links);
  const observed = kernel.observe(desired, nft);
  const { operations: differing, conflicts } = diffHost(desired, observed);
  const operations = [...locateDirectNics(state, kernel, links), ...differing];
  const allowed = withoutPaused(deps, operations, cause);
  const generation = state.kernelGeneration;
  const done: Operation[] = [];
  const failed = await kernel.apply(allowed, (operation) => {
    done.push(operation);
    deps.log.info('kernel changed', { request: renderOperation(operation), cause });
  });
  for (const { operation, error } of failed) {
    deps.log.error('kernel change failed', { request: renderOperation(operation), cause, error });
  }
  resetReturnedNics(deps);
  reportConflicts(deps, conflicts);
  updateReadiness(deps, observed, failed);
  count(deps, operations, done);
  deps.planned?.({ ...node, ruleMode: state.ruleMode }, state.plannedEnis);
  const durationMs = deps.clock.monotonicMs() - startedMs;
  deps.operationLog.repaired({ cause, durationMs, done, failed, leases: state.leases.values() });
  const paused = leftOut(operations, allowed);
  return { done, failed, paused, conflicts, isStale: generation !== state.kernelGeneration && allowed.length > 0 };
}

/**
 * Resets interfaces that returned by themselves: their Pod's namespace was deleted without a DEL, or after one that
 * could not wait for them.
 */
function resetReturnedNics({ state, kernel, log }: ReconcileDeps): void {
  for (const link of findReturnedNics(state)) {
    try {
      kernel.resetNic(link);
      log.info('interface of an exclusive ENI came back', { link: link.ifname, mac: link.mac });
    } catch (error) {
      log.error('interface of an exclusive ENI cannot be put to rest', { link: link.ifname, mac: link.mac, error });
    }
  }
}

/** Plans the desired state of this moment; journals the records of new ENIs. */
function planned(deps: ReconcileDeps, node: NodeNetwork, links: readonly HostLink[]): HostState {
  const enis = syncEnis(deps, links);
  deps.state.plannedEnis = enis;
  return desiredState(deps.state, { ...node, ruleMode: deps.state.ruleMode }, enis, links);
}

/** Leaves out what is being fought over, and counts the rest as repaired once more. */
function withoutPaused(deps: ReconcileDeps, operations: readonly Operation[], cause: string): readonly Operation[] {
  return withoutReliant(
    operations,
    operations.filter((operation) => mayApply(deps, operation, cause)),
  );
}

/** Leaves removals out unless all operations are allowed: a removal comes last and relies on what comes before it. */
export function withoutReliant(operations: readonly Operation[], allowed: readonly Operation[]): readonly Operation[] {
  return allowed.length === operations.length ? allowed : allowed.filter((operation) => !isRemoval(operation));
}

/** Returns the operations that are not in `allowed`. */
export function leftOut(operations: readonly Operation[], allowed: readonly Operation[]): readonly Operation[] {
  if (operations.length === allowed.length) return [];
  const allowedSet = new Set(allowed);
  return operations.filter((operation) => !allowedSet.has(operation));
}

/** Tells whether an operation only removes something. */
export function isRemoval({ kind }: Operation): boolean {
  return kind === 'delete-rule' || kind === 'delete-route' || kind === 'delete-address' || kind === 'delete-neigh';
}

function mayApply(deps: ReconcileDeps, operation: Operation, cause: string): boolean {
  const request = renderOperation(operation);
  const verdict = deps.fights.evaluate(request, deps.clock.monotonicMs());
  if (verdict === 'alarm') {
    deps.metrics.fightStarted(operation.kind);
    deps.fightStarted?.(request);
    deps.operationLog.report('fight', () => ({ text: `another program keeps undoing: ${request}`, isFailure: true }));
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
  state.conflicts = conflicts.filter(({ kind }) => BLOCKING.has(kind)).map(({ message }) => message);
  deps.metrics.conflicts(texts.length);
}

/**
 * Updates which ENIs are ready: the link exists, its own operations succeeded, and its table has no foreign entries.
 */
function updateReadiness(deps: ReconcileDeps, observed: ObservedHost, failed: readonly FailedOperation[]): void {
  const { state } = deps;
  const before = new Set(state.readyEnis);
  state.readyEnis.clear();
  for (const eni of state.enis.values()) {
    const foreign =
      observed.routes.find(({ table, protocol }) => table === eni.table && protocol !== RTPROT_TKE_ENI) ??
      observed.rules.find(({ table, protocol }) => table === eni.table && protocol !== RTPROT_TKE_ENI);
    if (foreign !== undefined) {
      const text = `table ${eni.table} is used by others: "${foreign.shown}"`;
      state.eniProblems.set(eni.eniId, { eniId: eni.eniId, kind: 'conflict', text });
      continue;
    }
    const refused = failed.find(({ operation }) => touches(operation, eni.table, eni.ifindex));
    if (refused !== undefined) {
      const text = `cannot be set up: ${String(refused.error)}`;
      state.eniProblems.set(eni.eniId, { eniId: eni.eniId, kind: 'conflict', text });
      continue;
    }
    state.eniProblems.delete(eni.eniId);
    state.readyEnis.add(eni.eniId);
    if (!before.has(eni.eniId)) deps.log.info('ENI is ready', { eniId: eni.eniId, link: eni.ifname, table: eni.table });
  }
  deps.metrics.enis(state.readyEnis.size, state.eniProblems.size);
  state.changed.notify();
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
  for (const [kind, group] of Map.groupBy(found, ({ kind }) => kind)) deps.metrics.drift(kind, group.length);
  for (const [kind, group] of Map.groupBy(done, ({ kind }) => kind)) deps.metrics.repaired(kind, group.length);
  deps.metrics.fights(deps.fights.paused(deps.clock.monotonicMs()).length);
}

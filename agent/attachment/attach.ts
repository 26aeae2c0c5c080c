import { isWireError } from '../../dataplane/wire-error.ts';
import type { OpenNetns } from '../../netlink/netns.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { type CniFailure, CniFailureError } from '../api/cni-failure.ts';
import { type Lease, type LeaseKey, leaseKey } from '../journal/lease.ts';
import type { UseCaseDeps, WiredLink } from '../state/ports.ts';
import { allocateIntent } from './allocate-intent.ts';
import type { AttachCommand, TimedAttachCommand } from './attach-command.ts';
import { chooseNetwork, OtherNetworkError } from './choose-network.ts';
import { failureOf } from './failure-of.ts';
import { teardown } from './teardown.ts';

/** The outcome of an ADD. */
export type AttachOutcome =
  | { readonly kind: 'attached'; readonly lease: Lease }
  /** Another plugin makes the network: nothing is done here. `failure` is for an executable that cannot call one. */
  | { readonly kind: 'delegated'; readonly network: string; readonly confDir: string; readonly failure: CniFailure }
  | { readonly kind: 'failed'; readonly failure: CniFailure };

/**
 * Gives a sandbox an address and wires it. Idempotent for one container, interface and netns. Lease and commit: the
 * lease is recorded before the kernel is changed, and becomes active only when the wiring was verified and the caller
 * still waits; when the caller gave up (`signal`), or after a failure, everything is undone.
 */
export async function attach(deps: UseCaseDeps, request: AttachCommand, signal: AbortSignal): Promise<AttachOutcome> {
  const startedMs = deps.clock.monotonicMs();
  const command = { ...request, deadlineAtBootMs: onBootClock(deps, request.deadlineAtMs) };
  const outcome = await attachOrFail(deps, command, signal, startedMs);
  const code = outcome.kind === 'failed' ? outcome.failure.code : 0;
  deps.metrics.requests.observeMs({ verb: 'add', code }, deps.clock.monotonicMs() - startedMs);
  return outcome;
}

/** The caller wrote its deadline with the wall clock of this machine, milliseconds ago: the one time it is compared. */
function onBootClock({ clock }: UseCaseDeps, deadlineAtMs: number): number {
  return deadlineAtMs > 0 ? clock.bootMs() + deadlineAtMs - clock.nowMs() : Number.POSITIVE_INFINITY;
}

async function attachOrFail(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  signal: AbortSignal,
  startedMs: number,
): Promise<AttachOutcome> {
  const key = leaseKey(command);
  const receivedMs = deps.clock.bootMs();
  try {
    const lease = await deps.state.inflightAdds.run(key, { receivedMs, signal }, (untilDel) =>
      deps.mutex.run(key, async () => {
        const phases = new PhaseTimer(deps, key, startedMs);
        const work = (): Promise<Lease> => {
          phases.end('queue');
          return attachLocked(deps, command, { receivedMs, signal: untilDel }, phases);
        };
        return await withOperationLog(deps, key, command, { startedMs, work });
      }),
    );
    return { kind: 'attached', lease };
  } catch (error) {
    if (error instanceof OtherNetworkError) return delegated(deps, command, error);
    const failure = failureOf(error);
    deps.log.warn('attach failed', {
      pod: `${command.podNamespace}/${command.podName}`,
      key,
      code: failure.code,
      error,
    });
    return { kind: 'failed', failure };
  }
}

function delegated(
  { log, settings }: UseCaseDeps,
  { podNamespace, podName }: TimedAttachCommand,
  { network, message }: OtherNetworkError,
): AttachOutcome {
  log.info('another plugin makes the network', { pod: `${podNamespace}/${podName}`, network });
  const details = 'the executable tke-route-eni on this node is of an older release, which calls no other plugins';
  return {
    kind: 'delegated',
    network,
    confDir: settings.delegateConfDir,
    failure: { code: CNI_CODE.invalidConf, msg: message, details },
  };
}

/** Runs an ADD, under its key's lock, between its beginning and its end in the operation log. */
async function withOperationLog(
  deps: UseCaseDeps,
  key: LeaseKey,
  { podNamespace, podName }: TimedAttachCommand,
  { startedMs, work }: { readonly startedMs: number; readonly work: () => Promise<Lease> },
): Promise<Lease> {
  deps.operationLog.begin(key, { kind: 'add', podNamespace, podName, startedMs });
  try {
    const lease = await work();
    deps.operationLog.end(key, { lease });
    return lease;
  } catch (error) {
    deps.operationLog.end(key, error instanceof OtherNetworkError ? {} : { failure: failureOf(error) });
    throw error;
  }
}

async function attachLocked(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  { receivedMs, signal }: { readonly receivedMs: number; readonly signal: AbortSignal },
  phases: PhaseTimer,
): Promise<Lease> {
  const netns = command.plugin === 'ipam' ? undefined : deps.sandboxes.open(command.netns);
  try {
    throwIfCancelled(deps, command, signal);
    const chosen = await chooseNetwork(deps, command, signal);
    refuseSmallMtu(deps, chosen.command);
    const existing = await reuseAttachment(deps, chosen.command, netns);
    if (existing !== undefined) return existing;
    const intent = await allocateIntent(deps, chosen, receivedMs, signal);
    phases.end('allocate');
    const lease = recordIntent(deps, intent);
    phases.end('record');
    try {
      const wired = await wire(deps, command, lease, netns, phases);
      // A caller may have hung up while this process was busy, or stopped.
      await deps.readPendingInput();
      throwIfCancelled(deps, command, signal);
      return commit(deps, wired);
    } catch (error) {
      await undoAttach(deps, lease, error);
      throw error;
    }
  } finally {
    netns?.close();
  }
}

/** Smallest MTU of a link with IPv6, bytes; below it the kernel has no IPv6 there. @see RFC 8200 section 5 */
const IPV6_MIN_MTU = 1280;

function refuseSmallMtu({ state }: UseCaseDeps, { mtu, disableIpv6, plugin }: TimedAttachCommand): void {
  if (plugin === 'bridge') return;
  const families = plugin === 'direct-eni' ? state.familiesOfNode() : state.podFamilies();
  if (mtu === 0 || mtu >= IPV6_MIN_MTU || disableIpv6 || !families.includes(6)) return;
  throw new CniFailureError(
    CNI_CODE.invalidConf,
    `mtu ${mtu} is too small: this node's Pods have IPv6 addresses, and IPv6 needs ${IPV6_MIN_MTU}`,
    `set mtu of the network configuration to ${IPV6_MIN_MTU} or more, or disableIPv6`,
  );
}

/** Returns the lease of an ADD that succeeded before; undefined when no attachment is left that could be the answer. */
async function reuseAttachment(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  netns: OpenNetns | undefined,
): Promise<Lease | undefined> {
  const lease = deps.state.leases.get(leaseKey(command));
  if (lease === undefined) return undefined;
  if (lease.state !== 'active') {
    // Left by an attempt that could not be undone at once; it is undone now, or this ADD fails with the reason.
    await clear(deps, lease);
    return undefined;
  }
  if (
    lease.plugin !== command.plugin ||
    (lease.plugin !== 'ipam' && lease.netns !== '' && lease.netns !== command.netns)
  ) {
    throw new CniFailureError(
      CNI_CODE.ifnameTaken,
      `interface ${command.ifName} of container ${command.containerId} is attached already, in netns ${lease.netns}`,
      `asked for netns ${command.netns}; DEL it first`,
    );
  }
  const pod = deps.state.podNetwork(lease);
  // Who keeps the rules of an address was decided when it was given.
  const isSameUse = (lease.uplink ?? false) === command.uplink;
  if (pod !== undefined && isSameUse && (await deps.wiring.check(pod, netns, 'own')).length === 0) return lease;
  // Part of it is missing, perhaps the whole netns: only a new attachment is a true answer.
  await clear(deps, lease);
  return undefined;
}

async function clear(deps: UseCaseDeps, lease: Lease): Promise<void> {
  if ((await teardown(deps, lease, deps.settings.ipCooldownMs)) === 'erased') return;
  throw new CniFailureError(CNI_CODE.io, 'the end of an earlier attachment cannot be recorded', 'see the state folder');
}

function recordIntent(deps: UseCaseDeps, lease: Lease): Lease {
  const key = leaseKey(lease);
  try {
    deps.operationLog.decided(key, lease);
    deps.journal.putLease(lease);
    deps.state.leases.set(key, lease);
    return lease;
  } catch (error) {
    // Nothing was recorded and nothing done: what was taken is returned at once.
    if (lease.block !== undefined) {
      for (const { ip } of lease.addresses) deps.reservations.release({ ip, containerId: lease.containerId });
    }
    deps.state.release(lease, { nowMs: deps.clock.bootMs(), cooldownMs: 0 });
    deps.state.changed.notify();
    throw error;
  }
}

async function wire(
  deps: UseCaseDeps,
  { disableIpv6, filterPlace = false }: TimedAttachCommand,
  lease: Lease,
  netns: OpenNetns | undefined,
  phases: PhaseTimer,
): Promise<Lease> {
  const { state, wiring } = deps;
  const key = leaseKey(lease);
  const pod = state.podNetwork(lease);
  if (pod === undefined) throw new CniFailureError(CNI_CODE.eniGone, `ENI ${lease.eniId} went away`, 'try again');
  state.kernelGeneration++;
  let link: WiredLink | undefined;
  try {
    link = wiring.wire({ ...pod, disableIpv6, filterPlace }, netns);
  } catch (error) {
    if (lease.block === undefined || !isWireError(error, 'BRIDGE_MISSING')) throw error;
    // Another program deleted it a moment ago.
    await deps.prepareBridge(lease.block.cidr, 'again');
    link = wiring.wire({ ...pod, disableIpv6, filterPlace }, netns);
  }
  // In memory before anything else runs: for a repair pass that comes now the new routes must be part of the plan.
  const wired: Lease =
    link === undefined || lease.hostVeth === undefined ? lease : { ...lease, hostVeth: { ...lease.hostVeth, ...link } };
  state.leases.set(key, wired);
  state.wired.add(key);
  // The interface is in the Pod now; the next owner of the ENI waits until it comes back.
  if (lease.nic !== undefined) state.exclusiveNics.delete(lease.eniId);
  phases.end('netlink');
  const differences = wiring.verify(state.podNetwork(wired) ?? pod);
  phases.end('verify');
  if (differences.length > 0) {
    throw new CniFailureError(CNI_CODE.kernel, 'the kernel does not hold what was written', differences.join('\n'));
  }
  return wired;
}

function commit(deps: UseCaseDeps, wired: Lease): Lease {
  const { hostVeth, podMac } = wired;
  const active: Lease = { ...wired, state: 'active' };
  const key = leaseKey(wired);
  deps.journal.activateLease(key, {
    ...(hostVeth === undefined ? {} : { hostVeth }),
    ...(podMac === undefined ? {} : { podMac }),
  });
  deps.state.leases.set(key, active);
  deps.state.wired.delete(key);
  if (active.plugin === 'route-eni') deps.linkMade(key);
  deps.operationLog.step(key, 'commit');
  deps.demandChanged();
  deps.log.info('pod attached', {
    pod: `${wired.podNamespace}/${wired.podName}`,
    containerId: wired.containerId,
    ifName: wired.ifName,
    ips: wired.addresses.map(({ ip }) => ip),
    eniId: wired.eniId,
    link: hostVeth?.name,
  });
  return active;
}

async function undoAttach(deps: UseCaseDeps, lease: Lease, cause: unknown): Promise<void> {
  try {
    const known = deps.state.leases.get(leaseKey(lease)) ?? lease;
    await teardown(deps, known, deps.settings.ipCooldownMs);
  } catch (error) {
    // The lease stays as `releasing` and holds its address; the timer tries again. The first error is the one to
    // report.
    deps.log.error('a failed attach could not be undone, will be tried again', { cause, error });
  }
}

function throwIfCancelled(deps: UseCaseDeps, { deadlineAtBootMs }: TimedAttachCommand, signal: AbortSignal): void {
  const isPastDeadline = deps.clock.bootMs() >= deadlineAtBootMs;
  if (!signal.aborted && !isPastDeadline) return;
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    'the caller gave up before the attachment was complete',
    isPastDeadline ? 'its deadline has passed' : String(signal.reason ?? ''),
  );
}

/**
 * Phases of an ADD: waiting for the attachment's lock, getting an address, recording the lease, wiring, verifying the
 * result.
 */
type AddPhase = 'queue' | 'allocate' | 'record' | 'netlink' | 'verify';

/** Measures an ADD phase by phase; `queue` began when the request was received. */
class PhaseTimer {
  readonly #deps: UseCaseDeps;
  readonly #key: LeaseKey;
  #sinceMs: number;

  constructor(deps: UseCaseDeps, key: LeaseKey, startedMs: number) {
    this.#deps = deps;
    this.#key = key;
    this.#sinceMs = startedMs;
  }

  end(phase: AddPhase): void {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#deps.metrics.addPhases.observeMs({ phase }, nowMs - this.#sinceMs);
    this.#deps.operationLog.step(this.#key, phase);
    this.#sinceMs = nowMs;
  }
}

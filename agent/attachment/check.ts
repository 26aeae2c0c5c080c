import { CNI_CODE } from '../api/cni-code.ts';
import { type CniFailure, CniFailureError } from '../api/cni-failure.ts';
import { type Lease, leaseKey } from '../journal/lease.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import { failureOf } from './failure-of.ts';

/** The outcome of a CHECK. */
export type CheckOutcome =
  | { readonly kind: 'checked'; readonly lease: Lease; readonly differences: readonly string[] }
  | { readonly kind: 'failed'; readonly failure: CniFailure };

/** Compares an attachment with the kernel and reports every difference. Repairs nothing. */
export async function check(
  deps: UseCaseDeps,
  target: { readonly containerId: string; readonly ifName: string; readonly netns: string },
): Promise<CheckOutcome> {
  const startedMs = deps.clock.monotonicMs();
  const outcome = await deps.mutex.run(leaseKey(target), () => checkLocked(deps, target));
  const code =
    outcome.kind === 'failed' ? outcome.failure.code : outcome.differences.length > 0 ? CNI_CODE.checkFailed : 0;
  deps.metrics.requests.observeMs({ verb: 'check', code }, deps.clock.monotonicMs() - startedMs);
  return outcome;
}

async function checkLocked(
  deps: UseCaseDeps,
  target: { readonly containerId: string; readonly ifName: string; readonly netns: string },
): Promise<CheckOutcome> {
  const key = leaseKey(target);
  const lease = deps.state.leases.get(key);
  deps.operationLog.begin(key, {
    kind: 'check',
    podNamespace: lease?.podNamespace ?? '',
    podName: lease?.podName ?? '',
  });
  const outcome = await compare(deps, target);
  deps.operationLog.end(key, outcome.kind === 'failed' ? { lease, failure: outcome.failure } : outcome);
  return outcome;
}

async function compare(
  deps: UseCaseDeps,
  target: { readonly containerId: string; readonly ifName: string; readonly netns: string },
): Promise<CheckOutcome> {
  try {
    const lease = deps.state.leases.get(leaseKey(target));
    if (lease === undefined || lease.state !== 'active') {
      throw new CniFailureError(
        CNI_CODE.unknownContainer,
        `container ${target.containerId} has no attachment ${target.ifName} on this node`,
        'the Pod sandbox must be made anew',
      );
    }
    return { kind: 'checked', lease, differences: await differencesOf(deps, lease, target.netns) };
  } catch (error) {
    return { kind: 'failed', failure: failureOf(error) };
  }
}

async function differencesOf(deps: UseCaseDeps, lease: Lease, netnsPath: string): Promise<readonly string[]> {
  const differences: string[] = [];
  const isWired = lease.plugin !== 'ipam';
  // An adopted lease may have no netns; then the runtime's path is taken.
  if (isWired && lease.netns !== '' && netnsPath !== lease.netns) {
    differences.push(`netns: attached in ${lease.netns}, the runtime says ${netnsPath}`);
  }
  const problem = deps.state.eniProblems.get(lease.eniId);
  // Pods of an ENI that is refused since keep their network.
  if (problem !== undefined && problem.kind !== 'refused') differences.push(`ENI ${lease.eniId}: ${problem.text}`);
  const pod = deps.state.podNetwork(lease);
  if (pod === undefined) return [...differences, `ENI ${lease.eniId}: not known on this node`];
  const netns = isWired ? deps.sandboxes.open(netnsPath) : undefined;
  try {
    const found = await deps.wiring.check(pod, netns, 'all');
    return [
      ...differences,
      ...(lease.podMac === undefined ? found.filter((text) => !text.startsWith('Pod: MAC of ')) : found),
    ];
  } finally {
    netns?.close();
  }
}

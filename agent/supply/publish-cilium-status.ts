import type { KubeClient } from '../../kube/kube-client.ts';
import { CILIUM_NODES } from '../../kube/resource-types.ts';
import { recordOf } from '../../runtime/json.ts';
import type { AgentParts } from '../state/ports.ts';
import type { CiliumNodeSource } from './cilium-node-source.ts';
import { ciliumUsedOf, decideReleases, releasePatchOf, usedPatchOf } from './decide-cilium-status.ts';

/** Dependencies of the writes into a CiliumNode. */
type CiliumStatusDeps = Pick<AgentParts, 'clock' | 'log' | 'state' | 'journal'> & {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly source: CiliumNodeSource;
  /** Least time between two writes of `status.ipam.used`, milliseconds. */
  readonly updateEveryMs: number;
  /** Called after each write, and each that failed. */
  readonly published: (outcome: 'changed' | 'failed') => void;
  /** Called when the object says all that it is to say. */
  readonly nothingDue: () => void;
};

/** A lease that changes is not notified in every case. */
const POLL_MS = 1_000;
const RETRY_MS = 2_000;

/**
 * Keeps `status.ipam.used` of the node's CiliumNode up to date, and answers the marks in `status.ipam.release-ips`, until
 * aborted. Writes nothing else. Never rejects.
 */
export async function publishCiliumStatus(deps: CiliumStatusDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, source } = deps;
  let usedWrittenMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const changed = source.changed.wait(POLL_MS, signal);
    try {
      const hasAnswered = await answerMarks(deps, signal);
      if (clock.monotonicMs() - usedWrittenMs >= deps.updateEveryMs) {
        if (await writeUsed(deps, signal)) usedWrittenMs = clock.monotonicMs();
        else if (!hasAnswered) deps.nothingDue();
      }
    } catch (error) {
      if (signal.aborted) return;
      deps.published('failed');
      log.warn('the status of the CiliumNode was not written, will be tried again', { error });
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
    await changed;
  }
}

/** @returns whether it was written */
async function writeUsed(deps: CiliumStatusDeps, signal: AbortSignal): Promise<boolean> {
  const { state, source } = deps;
  const observed = source.observed();
  if (observed === undefined) return false;
  const shown = recordOf(recordOf(recordOf(observed.object['status'])['ipam'])['used']);
  const used = ciliumUsedOf(state.leases.values(), state.supply, observed.ipam.pool);
  const body = usedPatchOf(used, shown);
  if (body === undefined) return false;
  await patch(deps, { kind: 'merge', body }, signal);
  return true;
}

/** @returns whether it was written */
async function answerMarks(deps: CiliumStatusDeps, signal: AbortSignal): Promise<boolean> {
  const { state, journal, source, log } = deps;
  const observed = source.observed();
  if (observed === undefined) return false;
  const { object, ipam, refused } = observed;
  const answers = decideReleases({
    ...{ ipam, leases: state.leases, addresses: state.pool.state.addresses },
    refused: new Set([...refused, ...state.refusals.flatMap(({ ip }) => ip ?? [])]),
    isRecorded: journal.load().supply === state.supply,
  });
  if (answers.length === 0) return false;
  await patch(deps, { kind: 'json', body: releasePatchOf(answers, object.metadata.resourceVersion ?? '') }, signal);
  log.info('release of addresses answered', { answers });
  return true;
}

async function patch(
  { client, nodeName, source, published }: CiliumStatusDeps,
  change: { readonly kind: 'merge' | 'json'; readonly body: unknown },
  signal: AbortSignal,
): Promise<void> {
  source.accept(await client.patch(CILIUM_NODES, { name: nodeName }, { ...change, subresource: 'status' }, signal));
  published('changed');
}

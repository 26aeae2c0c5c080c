import { runController } from '../../kube/controller.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { PODS_BY_NODE } from '../cache/pod-facts.ts';
import type { Term } from '../calls/term.ts';
import { isShared } from '../decide/with-enis.ts';
import type { NodeEniEntry } from './decide-vpc-eni.ts';
import { VpcEniReconciler } from './vpc-eni-reconciler.ts';

/** Name of the index of NodeENIConfigs by their exclusive ENIs. */
export const BY_EXCLUSIVE_ENI = 'exclusiveEni';

/** Lists the exclusive ENIs in an object; the informer of NodeENIConfigs indexes by them. */
export function exclusiveEniIdsOf({ decoded }: Pick<NecEntry, 'decoded'>): readonly string[] {
  return (decoded?.status?.eniInfos ?? []).filter((eni) => !isShared(eni)).map(({ eniID }) => eniID);
}

/** Each worker mostly waits for the API server or the cloud. */
const WORKERS = 4;

/** Reconciles VpcENIs until aborted, once both informers have their first list. For the leader only. */
export async function runVpcEnis(term: Term, signal: AbortSignal): Promise<void> {
  const { clock, log, random, necs, vpcEnis, observer } = term;
  await Promise.all([necs.synced(signal), vpcEnis.synced(signal)]);
  const reconciler = new VpcEniReconciler(term, (eniId) => entriesOf(term, eniId));
  const queue = new WorkQueue({ clock, random });
  const unsubscribe = followChanges(term, (eniId) => queue.add(eniId));
  for (const { eniId } of vpcEnis.values()) if (eniId !== '') queue.add(eniId);
  for (const entry of necs.values()) for (const eniId of exclusiveEniIdsOf(entry)) queue.add(eniId);
  try {
    const reconcile = (eniId: string, ended: AbortSignal) => reconciler.reconcile(eniId, ended);
    await runController({ name: 'vpcenis', queue, workers: WORKERS, reconcile, clock, log, observer }, signal);
  } finally {
    unsubscribe();
    queue.close();
  }
}

function entriesOf({ necs, pods }: Term, eniId: string): readonly NodeEniEntry[] {
  return necs.byIndex(BY_EXCLUSIVE_ENI, eniId).flatMap(({ name, decoded }) => {
    const { eniInfos = [], instanceID = '', zone = '' } = decoded?.status ?? {};
    const eni = eniInfos.find((one) => one.eniID === eniId);
    if (eni === undefined) return [];
    const pod = pods.byIndex(PODS_BY_NODE, name).find(({ ips }) => ips.includes(eni.primaryIP ?? ''));
    const used = pod === undefined ? {} : { pod: { namespace: pod.namespace, name: pod.name } };
    return [{ nodeName: name, instanceId: instanceID, zone, eni, ...used }];
  });
}

/** Calls `touch` for each ENI that changed, and enqueues the nodes that wait for the state in a VpcENI. */
function followChanges({ necs, vpcEnis, pods, enqueueNode }: Term, touch: (eniId: string) => void): () => void {
  const ends = [
    necs.subscribe(({ before, after }) => {
      if (before?.decoded?.status?.supplyEpoch === after?.decoded?.status?.supplyEpoch) return;
      const all = [before, after].flatMap((entry) => (entry === undefined ? [] : exclusiveEniIdsOf(entry)));
      for (const eniId of new Set(all)) touch(eniId);
    }),
    vpcEnis.subscribe(({ before, after }) => {
      for (const entry of [before, after]) if (entry !== undefined && entry.eniId !== '') touch(entry.eniId);
      // It may have gone with the id of another ENI, by which the one that it belongs to is not found.
      const nec = after === undefined ? necs.get(before?.nodeName ?? '') : undefined;
      if (nec !== undefined) for (const eniId of exclusiveEniIdsOf(nec)) touch(eniId);
      if (before?.phase === after?.phase && before?.claim === after?.claim) return;
      const { eniId = '', claim = '' } = after ?? before ?? {};
      const names = [...necs.byIndex(BY_EXCLUSIVE_ENI, eniId).map(({ name }) => name), pods.get(claim)?.nodeName];
      for (const name of names) if (name !== undefined && name !== '') enqueueNode(name);
    }),
    pods.subscribe(({ before, after }) => {
      const ips = new Set([...(before?.ips ?? []), ...(after?.ips ?? [])]);
      if (before?.ips.join() === after?.ips.join() || ips.size === 0) return;
      const { eniInfos = [] } = necs.get((after ?? before)?.nodeName ?? '')?.decoded?.status ?? {};
      for (const eni of eniInfos) if (!isShared(eni) && ips.has(eni.primaryIP ?? '')) touch(eni.eniID);
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

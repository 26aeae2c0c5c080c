import { isDeepStrictEqual } from 'node:util';
import { CLOUD_FINALIZER } from '../../../crd/names.ts';
import { type VpcIp, vpcIpName } from '../../../crd/vpc-ip.ts';
import type { InvolvedObject } from '../../../kube/events/event-object.ts';
import { hasFinalizer, withoutFinalizer } from '../../../kube/finalizers.ts';
import { guardsOf, updateGuarded } from '../../../kube/guarded-update.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { refOfKey } from '../../cache/pod-facts.ts';
import type { Term } from '../../calls/term.ts';
import type { ClaimDecision, ClaimWrite, VipWrite } from './claim-decision.ts';
import type { ClaimView } from './claim-view.ts';
import { renderClaim, renderVip } from './render-claim.ts';

/** Dependencies of the writes. */
type ClaimWriterDeps = Pick<Term, 'kube' | 'metrics'>;

/**
 * Makes the writes of a decision, in an order in which the next decision can continue after a kill between any two: a
 * new claim, then its VpcIPs, then the claim's state. Every write is guarded by the version that was read. Writes
 * nothing where nothing changes.
 * @throws KubeError CONFLICT, ALREADY_EXISTS and NOT_FOUND when the caches were behind; whatever else the client throws
 */
export async function writeDecision(
  deps: ClaimWriterDeps,
  view: ClaimView,
  { claim, vips }: Pick<ClaimDecision, 'claim' | 'vips'>,
  signal: AbortSignal,
): Promise<void> {
  if (claim?.kind === 'create') await writeClaim(deps, view, claim, signal);
  for (const vip of vips) await writeVip(deps, view, vip, signal);
  if (claim !== undefined && claim.kind !== 'create') await writeClaim(deps, view, claim, signal);
}

async function writeClaim(deps: ClaimWriterDeps, view: ClaimView, write: ClaimWrite, signal: AbortSignal) {
  const { kube, metrics } = deps;
  const current = objectOf(view.claim?.object);
  const ref = refOfKey(view.key);
  if (write.kind === 'create' || write.kind === 'put') {
    const owner = view.pod?.rule.workload;
    const object = renderClaim({ ...ref, owner }, write.desired, current, view.nowText);
    if (current === undefined) {
      await kube.create(VPC_IP_CLAIMS, object, signal);
      metrics.claimWrites.inc({ kind: 'create-claim' });
    } else if (!isDeepStrictEqual(object, current)) {
      await kube.update(VPC_IP_CLAIMS, object, signal);
      metrics.claimWrites.inc({ kind: 'update-claim' });
    }
    return;
  }
  if (current === undefined) return;
  if (write.kind === 'delete') {
    await kube.delete(VPC_IP_CLAIMS, ref, guardsOf(current.metadata), signal);
    metrics.claimWrites.inc({ kind: 'delete-claim' });
  } else if (hasFinalizer(current, CLOUD_FINALIZER)) {
    await kube.update(VPC_IP_CLAIMS, withoutFinalizer(current, CLOUD_FINALIZER), signal);
    metrics.claimWrites.inc({ kind: 'update-claim' });
  }
}

async function writeVip(deps: ClaimWriterDeps, view: ClaimView, write: VipWrite, signal: AbortSignal) {
  const { kube, metrics } = deps;
  const current = objectOf(write.vip?.object);
  if (write.kind === 'end') {
    if (write.vip !== undefined) await endVip(kube, write.vip, signal);
    metrics.claimWrites.inc({ kind: 'end-vip' });
    return;
  }
  const object = renderVip(view.key, write.desired, current, view.nowText);
  if (current === undefined) await kube.create(VPC_IPS, object, signal);
  else if (isDeepStrictEqual(object, current)) return;
  else await kube.update(VPC_IPS, object, signal);
  metrics.claimWrites.inc({ kind: 'put-vip' });
}

/**
 * Deletes a VpcIP before it removes the finalizer: without the finalizer it would look like one that a person wrote.
 */
async function endVip(kube: KubeClient, { metadata }: VpcIp, signal: AbortSignal): Promise<void> {
  const { name, uid, deletionTimestamp } = metadata;
  if (deletionTimestamp === undefined) await kube.delete(VPC_IPS, { name }, guardsOf(metadata), signal);
  const change = (object: KubeObject): KubeObject | undefined =>
    object.metadata.uid === uid && hasFinalizer(object, CLOUD_FINALIZER)
      ? withoutFinalizer(object, CLOUD_FINALIZER)
      : undefined;
  await updateGuarded(kube, VPC_IPS, { name }, change, { signal });
}

/** Deletes the record of a deleted Pod that has the name of a static address's VpcIP. */
export async function deleteRecord(
  kube: KubeClient,
  record: { readonly uid: string; readonly resourceVersion: string },
  ip: string,
  signal: AbortSignal,
): Promise<void> {
  await kube.delete(VPC_IPS, { name: vpcIpName(ip) }, guardsOf(record), signal);
}

/** Builds the reference of a claim for events. */
export function involvedClaim(key: string, uid: string | undefined): InvolvedObject {
  return involvedObject(VPC_IP_CLAIMS, { ...refOfKey(key), uid });
}

function objectOf(object: Readonly<Record<string, unknown>> | undefined): KubeObject | undefined {
  // The decoded object is the whole object that an informer read.
  return object as KubeObject | undefined;
}

import { VPC_IP_KIND, vpcIpName } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { createPodDecoder, networkRequestOf, refOfKey } from '../../cache/pod-facts.ts';
import { decodeVip } from '../../cache/record-facts.ts';
import type { Term } from '../../calls/term.ts';
import type { ClaimDecision } from './claim-decision.ts';
import type { ClaimView } from './claim-view.ts';

/**
 * Reports whether the API server has an object whose absence in the cache made the decision give a static address up: the
 * Pod of a claim that would be deleted, or the claim or a VpcIP of addresses that would be freed. A cache lacks what a
 * broken list lacked, and a static address that was given up does not come back. An object that is deleted with the
 * definition of its kind ends nothing either. After such a loss the claim of a Pod that runs is not made again for a
 * while: it would get another address.
 * @returns what is in the way, for people; undefined when the decision may be carried out
 * @throws KubeError when the API server does not answer
 */
export async function findObjection(
  { kube, definitions }: Pick<Term, 'kube' | 'definitions'>,
  view: ClaimView,
  { claim }: Pick<ClaimDecision, 'claim'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const deleted = [view.claim, ...view.vips].find((one) => one?.metadata.deletionTimestamp !== undefined);
  if (
    deleted !== undefined &&
    !(await definitions.isOwnDeletion(
      deleted === view.claim ? VPC_IP_CLAIM_KIND : VPC_IP_KIND,
      deleted.metadata.uid ?? '',
      signal,
    ))
  )
    return 'the definition of its kind is being deleted';
  const isNew = claim?.kind === 'create' && view.locations.length === 0;
  if (isNew && view.pod?.ip !== undefined && definitions.wereLostLately) return RESTORE;
  if (claim?.kind === 'delete' && view.pod === undefined) {
    const pod = await kube.get(PODS, refOfKey(view.key), signal);
    return pod !== undefined && isStaticAndAlive(pod) ? `Pod ${view.key} exists` : undefined;
  }
  const isFreed = view.claim === undefined && view.pod === undefined && view.vips.length === 0;
  if (!isFreed || claim !== undefined || view.locations.length === 0) return undefined;
  if (definitions.wereLostLately) return RESTORE;
  if ((await kube.get(VPC_IP_CLAIMS, refOfKey(view.key), signal)) !== undefined) return `VpcIPClaim ${view.key} exists`;
  const ips = new Set(view.locations.flatMap(({ ip }) => ip ?? []));
  for (const ip of ips) {
    const vip = await kube.get(VPC_IPS, { name: vpcIpName(ip) }, signal);
    const facts = vip === undefined ? undefined : decodeVip(vip);
    if (facts !== undefined && !facts.isRecord && facts.podKey === view.key) return `VpcIP ${vpcIpName(ip)} exists`;
  }
  return undefined;
}

const RESTORE = 'definitions were lost a short time ago, and the claim may be restored from a backup';

/** Reports whether a Pod asks for a claim of its own and may still run. The decoder leaves out Pods that are over. */
function isStaticAndAlive(object: KubeObject): boolean {
  const pod = createPodDecoder()(object);
  if (pod?.claimInfo === undefined || pod.isLeaving) return false;
  const { request } = networkRequestOf(pod);
  return request.isStatic || request.securityGroupIds !== undefined;
}

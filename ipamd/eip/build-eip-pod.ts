import { readEipRequest } from '../../crd/eip-request.ts';
import { POD_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { readClaimExpiry } from '../../crd/pod-network-request.ts';
import { Faults } from '../../runtime/decode.ts';
import { type PodFacts, runtimeUidOf } from '../cache/pod-facts.ts';
import type { EipPod, EipTarget } from './eip-view.ts';

/** Tells whether a Pod requests an EIP, also when the request is malformed. */
export function requestsEip({ annotations }: Pick<PodFacts, 'annotations'>): boolean {
  return annotations[POD_ANNOTATION.eipAttributes] !== undefined || annotations[POD_ANNOTATION.eipIdList] !== undefined;
}

/** Reads a Pod's request and finds the location of its address. `status`: of its node's NodeENIConfig. */
export function buildEipPod(pod: PodFacts, status: NodeEniConfigStatus | undefined): EipPod {
  const faults = new Faults();
  const request = readEipRequest(pod.annotations, faults);
  const [first] = faults.list;
  const expired = pod.annotations[POD_ANNOTATION.claimExpiredDuration];
  const isReadable = expired !== undefined && readClaimExpiry(expired.trim(), '', new Faults()) !== undefined;
  return {
    uid: pod.uid,
    publicIp: pod.annotations[POD_ANNOTATION.eipPublicIp],
    isLeaving: pod.isLeaving,
    request,
    requestFault: first === undefined ? undefined : `${first.path}: expected ${first.expected}, got ${first.got}`,
    claimExpired: isReadable ? expired.trim() : undefined,
    target: targetOf(pod, status),
  };
}

/**
 * Finds the location of the Pod's IPv4 address. An EIP is bound to an address of a shared ENI, or to the only one of an
 * exclusive ENI.
 */
function targetOf(pod: PodFacts, status: NodeEniConfigStatus | undefined): EipTarget | undefined {
  const ip = pod.ips.find((one) => !one.includes(':'));
  if (ip === undefined) return undefined;
  for (const eni of status?.eniInfos ?? []) {
    if (eni.state !== 'Attached') continue;
    const isDirect = eni.mode === 'direct-eni' && eni.primaryIP === ip && mayUse(eni.claim, pod);
    const address = (eni.addresses ?? []).find((one) => one.ip === ip && one.state === 'Assigned');
    if (isDirect || (address !== undefined && mayUse(address.claim, pod))) {
      return { nodeName: pod.nodeName, eniId: eni.eniID, ip };
    }
  }
  return undefined;
}

/** Tells whether the Pod may use the address: a static one only with the Pod's uid in its mark. */
function mayUse(mark: { readonly uid?: string } | undefined, pod: PodFacts): boolean {
  return mark === undefined || mark.uid === runtimeUidOf(pod);
}

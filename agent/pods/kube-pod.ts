import { readEipRequest } from '../../crd/eip-request.ts';
import { MIRROR_ANNOTATION } from '../../crd/foreign-names.ts';
import { POD_ANNOTATION } from '../../crd/names.ts';
import { hasPodEnded, networkOfPod, readPodIps } from '../../crd/pod-fields.ts';
import { isStaticPod } from '../../crd/pod-network-request.ts';
import { ACCEPTED_NETWORKS, type PodNetworks, readPodNetworks } from '../../crd/pod-networks.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { Faults } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import { limitText } from '../../runtime/limit-text.ts';
import type { RecordedPod } from '../journal/journal-content.ts';

/** What the agent caches of a Pod of its node that may have an address of ours: what it records, and what changes while it lives. */
export type KubePod = RecordedPod & {
  /** It is not being deleted, so it needs an address. */
  readonly isAlive: boolean;
  readonly isRunning: boolean;
  /** It requests a public address of its own. */
  readonly requestsEip?: true;
  /** The addresses in its status. */
  readonly ips: readonly string[];
};

/**
 * Returns the uid by which kubelet and the runtime know a Pod: a static Pod's differs from that of its mirror Pod in
 * the API.
 */
export function podUidOf({ annotations, uid }: KubeObject['metadata']): string {
  return annotations?.[MIRROR_ANNOTATION] ?? uid ?? '';
}

/**
 * Extracts what the agent caches of a Pod; undefined for one that has no address of ours: in the host's network, or
 * ended.
 */
export function kubePodOf({ metadata, ...pod }: KubeObject): KubePod | undefined {
  const [spec, status] = [recordOf(pod['spec']), recordOf(pod['status'])];
  if (spec['hostNetwork'] === true || hasPodEnded(status)) return undefined;
  const networks = readPodNetworks(metadata.annotations?.[POD_ANNOTATION.networks]);
  const networkFault = faultOf(networks);
  const name = networks.kind === 'named' ? networks.name : undefined;
  const isExclusive = networkFault === undefined && networkOfPod(networks, spec) === 'tke-direct-eni';
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: podUidOf(metadata),
    isAlive: metadata.deletionTimestamp === undefined,
    isRunning: status['phase'] === 'Running',
    ...(isStaticPod(metadata.annotations) ? { isStatic: true } : {}),
    ...(requestsEip(metadata.annotations) ? { requestsEip: true } : {}),
    ...(requestsGroups(metadata.annotations) ? { requestsGroups: true } : {}),
    ...(name === 'tke-route-eni' ? { network: 'route-eni' } : {}),
    ...(name === 'tke-bridge' ? { network: 'bridge' } : {}),
    ...(networkFault === undefined ? {} : { networkFault }),
    ...(networks.kind === 'other' ? { otherNetwork: networks.name } : {}),
    ...(isExclusive ? { direct: needsClaim(metadata.annotations) ? 'own' : 'pool' } : {}),
    ips: readPodIps(status),
  };
}

function faultOf(networks: PodNetworks): string | undefined {
  if (networks.kind === 'refused') return faultText(networks.expected, networks.got);
  return networks.kind === 'other' ? faultText(`one of ${ACCEPTED_NETWORKS}`, networks.name) : undefined;
}

function faultText(expected: string, got: string): string {
  return `${POD_ANNOTATION.networks}: expected ${expected}, got ${JSON.stringify(limitText(got, MAX_GOT))}`;
}

/** Most characters of the annotation in a fault. */
const MAX_GOT = 128;

/** Reports whether a Pod requires an ENI with its own claim: its address is static, or it requests security groups. */
function needsClaim(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return isStaticPod(annotations) || requestsGroups(annotations);
}

function requestsGroups(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return (annotations[POD_ANNOTATION.securityGroups] ?? '').trim() !== '';
}

/** Reports whether a Pod requests an EIP. A malformed request counts as none: then the Pod uses the node's address. */
function requestsEip(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return readEipRequest(annotations, new Faults()) !== undefined;
}

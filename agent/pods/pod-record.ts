import { readEipWish } from '../../crd/eip-wish.ts';
import { DIRECT_ENI_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { readNetworks } from '../../crd/pod-networks.ts';
import { isStaticPod } from '../../crd/pod-wishes.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { Faults, isRecord } from '../../runtime/decode.ts';

/** What the agent keeps of a Pod of its node that may have an address of ours. */
export type PodRecord = {
  readonly namespace: string;
  readonly name: string;
  /** As the kubelet and the runtime have it: a static Pod's is not that of its mirror in the API. */
  readonly uid: string;
  /** It is or will be run, and so needs an address. */
  readonly isAlive: boolean;
  readonly isRunning: boolean;
  /** It gets the address that is kept for its name, and no other. */
  readonly keepsAddress?: true;
  /** It has, or is to have, a public address of its own. */
  readonly asksForEip?: true;
  /** It has an ENI as a whole: any of the pool, or one that is kept or prepared for it. Absent: it shares one. */
  readonly direct?: 'pool' | 'own';
  /** It asks for security groups, which an ENI that others share, or that nobody prepared for it, has not. */
  readonly asksForGroups?: true;
  /** As its status says. */
  readonly ips: readonly string[];
};

/** The uid by which the kubelet and the runtime know a Pod: a static Pod's is not that of its mirror in the API. Pure. */
export function podUidOf({ annotations, uid }: KubeObject['metadata']): string {
  return annotations?.[MIRROR_ANNOTATION] ?? uid ?? '';
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const SHARED_ENI = 'tke-route-eni';
const WHOLE_ENI = 'tke-direct-eni';

/**
 * Takes from a Pod what the agent keeps; undefined for one that has no address of ours: in the host's network, in another
 * network by its annotation, or ended. Pure.
 */
export function podRecordOf({ metadata, ...pod }: KubeObject): PodRecord | undefined {
  const [spec, status] = [recordOf(pod['spec']), recordOf(pod['status'])];
  const phase = status['phase'];
  if (spec['hostNetwork'] === true || phase === 'Succeeded' || phase === 'Failed') return undefined;
  const asked = metadata.annotations?.[POD_ANNOTATION.networks] ?? '';
  const networks = readNetworks(asked);
  // As ipamd reads it: without that annotation its resources say.
  const isDirect = networks.includes(WHOLE_ENI) || (asked.trim() === '' && asksForEni(spec));
  if (asked.trim() !== '' && !networks.includes(SHARED_ENI) && !isDirect) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: podUidOf(metadata),
    isAlive: metadata.deletionTimestamp === undefined,
    isRunning: phase === 'Running',
    ...(isStaticPod(metadata.annotations) ? { keepsAddress: true } : {}),
    ...(isAskingForEip(metadata.annotations) ? { asksForEip: true } : {}),
    ...(asksForGroups(metadata.annotations) ? { asksForGroups: true } : {}),
    ...(isDirect ? { direct: needsOwnEni(metadata.annotations) ? 'own' : 'pool' } : {}),
    ips: ipsOf(status),
  };
}

function asksForEni({ containers }: Readonly<Record<string, unknown>>): boolean {
  return (Array.isArray(containers) ? containers : []).some((container: unknown) => {
    const { limits, requests } = recordOf(recordOf(container)['resources']);
    return [limits, requests].some((one) => recordOf(one)[DIRECT_ENI_RESOURCE] !== undefined);
  });
}

/** Its address is kept, or it has security groups that only an ENI of its own can have. */
function needsOwnEni(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return isStaticPod(annotations) || asksForGroups(annotations);
}

function asksForGroups(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return (annotations[POD_ANNOTATION.securityGroups] ?? '').trim() !== '';
}

/** One whose wish cannot be read gets no EIP, and the node's address serves it. */
function isAskingForEip(annotations: KubeObject['metadata']['annotations'] = {}): boolean {
  return readEipWish(annotations, new Faults()) !== undefined;
}

function ipsOf(status: Readonly<Record<string, unknown>>): readonly string[] {
  const listed = Array.isArray(status['podIPs']) ? status['podIPs'] : [];
  const ips = listed.flatMap((entry: unknown) => (isRecord(entry) ? [entry['ip']] : []));
  return [...new Set([status['podIP'], ...ips])].filter((ip) => typeof ip === 'string' && ip !== '') as string[];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

import { POD_ANNOTATION } from '../../crd/names.ts';
import { readNetworks } from '../../crd/pod-networks.ts';
import { isStaticPod } from '../../crd/pod-wishes.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';

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
  /** As its status says. */
  readonly ips: readonly string[];
};

/** The uid by which the kubelet and the runtime know a Pod: a static Pod's is not that of its mirror in the API. Pure. */
export function podUidOf({ annotations, uid }: KubeObject['metadata']): string {
  return annotations?.[MIRROR_ANNOTATION] ?? uid ?? '';
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const SHARED_ENI = 'tke-route-eni';

/**
 * Takes from a Pod what the agent keeps; undefined for one that has no address of ours: in the host's network, in another
 * network by its annotation, or ended. Pure.
 */
export function podRecordOf({ metadata, ...pod }: KubeObject): PodRecord | undefined {
  const [spec, status] = [recordOf(pod['spec']), recordOf(pod['status'])];
  const phase = status['phase'];
  if (spec['hostNetwork'] === true || phase === 'Succeeded' || phase === 'Failed') return undefined;
  const asked = metadata.annotations?.[POD_ANNOTATION.networks] ?? '';
  if (asked.trim() !== '' && !readNetworks(asked).includes(SHARED_ENI)) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: podUidOf(metadata),
    isAlive: metadata.deletionTimestamp === undefined,
    isRunning: phase === 'Running',
    ...(isStaticPod(metadata.annotations) ? { keepsAddress: true } : {}),
    ips: ipsOf(status),
  };
}

function ipsOf(status: Readonly<Record<string, unknown>>): readonly string[] {
  const listed = Array.isArray(status['podIPs']) ? status['podIPs'] : [];
  const ips = listed.flatMap((entry: unknown) => (isRecord(entry) ? [entry['ip']] : []));
  return [...new Set([status['podIP'], ...ips])].filter((ip) => typeof ip === 'string' && ip !== '') as string[];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

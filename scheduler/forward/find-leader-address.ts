import { openLock } from '../../kube/election/lock.ts';
import type { LockRef } from '../../kube/election/lock-record.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { recordOf, recordsOf } from '../../runtime/json.ts';

/** Dependencies of the look-up. */
export type LeaderLookupDeps = {
  readonly client: KubeClient & { readonly urgent?: KubeClient };
  readonly clock: Clock;
  readonly lock: LockRef;
  /** The port of a replica whose Pod names no port `https`. */
  readonly port: string;
};

/** Time limit of one read of the lock, milliseconds. */
const READ_MS = 2_000;
/** Name of the port in the Deployment. */
const PORT_NAME = 'https';

/**
 * Returns `host:port` of the leader: the lock names its Pod, and the Pod has the address. Undefined while no replica leads,
 * or the Pod is gone.
 * @throws KubeError
 */
export async function findLeaderAddress(deps: LeaderLookupDeps, signal: AbortSignal): Promise<string | undefined> {
  const { client, clock, lock } = deps;
  const { holder = '' } = (await openLock({ client, clock, attemptMs: READ_MS }, lock).read())?.record ?? {};
  // The election adds a random part to the name of the Pod.
  const name = holder.slice(0, Math.max(0, holder.lastIndexOf('_')));
  if (name === '') return undefined;
  const pod = await (client.urgent ?? client).get(PODS, { namespace: lock.namespace, name }, signal);
  return pod === undefined ? undefined : addressOf(pod, deps.port);
}

function addressOf(pod: KubeObject, otherwise: string): string | undefined {
  const { podIP } = recordOf(pod['status']);
  if (typeof podIP !== 'string' || podIP === '') return undefined;
  const host = podIP.includes(':') ? `[${podIP}]` : podIP;
  return `${host}:${portOf(pod) ?? otherwise}`;
}

function portOf(pod: KubeObject): number | undefined {
  const { containers } = recordOf(pod['spec']);
  const ports = recordsOf(containers).flatMap((container) => recordsOf(container['ports']));
  const port = ports.find(({ name }) => name === PORT_NAME)?.['containerPort'];
  return typeof port === 'number' ? port : undefined;
}

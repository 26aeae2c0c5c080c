import type { KubeClient } from '../kube-client.ts';
import type { Leadership } from './term.ts';

/**
 * Makes a client that changes nothing once the lease may be over, and reads as before. A process that stood still, as
 * its machine or cgroup was frozen, runs what was due meanwhile before the timer that ends its term: without this it
 * would send some calls as a leader beside the next one. A call that is under way is not affected.
 * @throws Error each changing call, when the lease may be over
 */
export function fenceWrites(client: KubeClient, { isHeld }: Pick<Leadership, 'isHeld'>): KubeClient {
  if (isHeld === undefined) return client;
  const fenced = async <T>(call: () => Promise<T>): Promise<T> => {
    if (!isHeld()) throw new Error('the lease may be over: nothing is changed by this process any more');
    return await call();
  };
  return {
    ...client,
    create: (...args) => fenced(() => client.create(...args)),
    update: (...args) => fenced(() => client.update(...args)),
    patch: (...args) => fenced(() => client.patch(...args)),
    delete: (...args) => fenced(() => client.delete(...args)),
  };
}

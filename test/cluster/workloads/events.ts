import { isObject } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { RealCluster } from '../real-cluster.ts';

/** Waits for an event of a Pod. @throws Error with the texts of those that came instead */
export async function awaitEvent(cluster: RealCluster, pod: string, message: RegExp): Promise<void> {
  let last: readonly string[] = [];
  await waitUntil(
    async () => {
      const list = await cluster.kubectlJson('get', 'events', '--field-selector', `involvedObject.name=${pod}`);
      const items = isObject(list) && Array.isArray(list['items']) ? list['items'].filter(isObject) : [];
      last = items.map((item) => String(item['message']).trim());
      return last.some((text) => message.test(text));
    },
    { what: `${pod}: event ${message}`, timeoutMs: 90_000, everyMs: 300, explain: () => last.join('\n') },
  );
}

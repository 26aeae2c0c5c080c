import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { runAsLeader } from '../../kube/leader-election.ts';
import { ENDPOINTS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { Child } from '../../sim/support/child.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { startRealApi } from '../kube-api/real-api.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTestClient } from './kube-scene.ts';

const LOCK = { kind: 'endpoints', namespace: 'kube-system', name: 'lock' } as const;
const STRAY = { namespace: 'kube-system', name: 'stray' };
const SLICES = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  isNamespaced: true,
};
const CONTROLLERS = 'endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller';
const assets = process.env['KUBE_ASSETS'];

if (assets === undefined) {
  test.skip('runAsLeader: a real kube-controller-manager leaves an Endpoints lock alone (set KUBE_ASSETS)', () => {});
} else {
  test('runAsLeader: a real kube-controller-manager leaves an Endpoints lock alone, also when it starts again', async (t) => {
    t.timeout(180_000);
    const api = await startRealApi(assets);
    const folder = createTempDir('kcm');
    const { client, close } = openTestClient({ url: api.url, token: api.token, ca: api.ca });
    const kubeconfig = folder.join('kubeconfig');
    writeFileSync(kubeconfig, renderKubeconfig({ url: api.url, token: api.token, ca: api.ca }));
    const startManager = (): Child =>
      new Child([
        join(assets, 'kube-controller-manager'),
        `--kubeconfig=${kubeconfig}`,
        `--controllers=${CONTROLLERS}`,
        '--leader-elect=false',
        '--secure-port=0',
      ]);
    const stop = new AbortController();
    const terms: number[] = [];
    const election = { client, lock: LOCK, identity: 'one', leaseMs: 15_000, renewMs: 2_000, retryMs: 500 };
    const deps = { clock: systemClock, log: silentLogger, random: seededRandom(1) };
    const leading = runAsLeader(
      { ...election, ...deps },
      async ({ epoch, signal }) => {
        terms.push(epoch);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
      stop.signal,
    );
    let manager = startManager();
    try {
      await waitUntil(() => terms.length === 1, { what: 'a leader' });
      const uid = (await client.get(ENDPOINTS, LOCK))?.metadata.uid;
      // What the annotation is for: Endpoints without it and without a Service are deleted when the manager starts.
      for (let round = 0; round < 2; round++) {
        await client.create(ENDPOINTS, { apiVersion: 'v1', kind: 'Endpoints', metadata: STRAY });
        await manager.stop();
        manager = startManager();
        const isGone = async () => (await client.get(ENDPOINTS, STRAY)) === undefined;
        const explain = () => manager.stderr.split('\n').slice(-5).join('\n');
        await waitUntil(isGone, { what: 'the deletion of the stray Endpoints', timeoutMs: 60_000, explain });
        const lock = await client.get(ENDPOINTS, LOCK);
        t.is(lock?.metadata.uid, uid);
        t.is(lock?.['subsets'], undefined);
      }
      t.deepEqual(terms, [1]);
      const { items } = await client.listPage(SLICES, { namespace: 'kube-system' });
      t.deepEqual(items, []);
    } finally {
      stop.abort(new Error('over'));
      await leading;
      await manager.stop();
      close();
      await api.close();
      folder.close();
    }
  });
}

import test from 'ava';
import { PODS } from '../../kube/resource-types.ts';
import { trackRights } from '../../kube/track-rights.ts';
import { withKubeScene } from './kube-scene.ts';

test('trackRights: a tracked client knows the clock of the server, as the client itself does', async (t) => {
  await withKubeScene({}, async ({ client }) => {
    const tracked = trackRights(client, () => {});
    t.is(tracked.serverMs?.(), undefined);
    await tracked.get(PODS, { namespace: 'default', name: 'none' });
    const serverMs = tracked.serverMs?.() ?? 0;
    t.true(Math.abs(serverMs - Date.now()) < 60_000, `${serverMs}`);
    t.not(tracked.urgent?.serverMs, undefined);
  });
});

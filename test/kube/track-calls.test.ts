import test from 'ava';
import { CallFailures } from '../../kube/call-failures.ts';
import { openInformer } from '../../kube/informer.ts';
import { PODS } from '../../kube/resource-types.ts';
import { trackCalls } from '../../kube/track-calls.ts';
import { trackRights } from '../../kube/track-rights.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
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

test('trackCalls: a watch that is open ends the refusal of the one before it, though nothing changes', async (t) => {
  await withKubeScene({}, async ({ api, client }) => {
    const failures = new CallFailures(systemClock);
    const turns: string[] = [];
    const over = Promise.withResolvers<void>();
    failures.subscribe(({ call }, isOver) => {
      turns.push(`${call} ${isOver ? 'over' : 'missing'}`);
      if (isOver) over.resolve();
    });
    api.faults.add({ verbs: ['watch'], action: { kind: 'status', code: 403, reason: 'Forbidden' }, times: 1 });
    const stop = new AbortController();
    const informer = openInformer({
      ...{ client: trackCalls(client, failures.settled), type: PODS, decode: (object) => object },
      ...{ clock: systemClock, log: silentLogger, random: () => 0.5 },
    });
    const running = informer.start(stop.signal);
    await Promise.race([over.promise, systemClock.sleep(5_000)]);
    stop.abort();
    await running;
    t.deepEqual(turns, ['watch pods missing', 'watch pods over']);
    t.deepEqual(failures.list(), []);
  });
});

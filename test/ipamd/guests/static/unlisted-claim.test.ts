import test from 'ava';
import { StaticCluster } from './static-cluster.ts';

const MINUTE_MS = 60_000;
/** In a minute that begins with half a second and doubles up to 15 s. */
const MOST_CREATES = 12;

test('runClaims: a claim that lists do not have is created again ever more rarely, and goes on when they have it', async (t) => {
  const cluster = await StaticCluster.make({ a: 3 });
  await cluster.startIpamd();
  const uid = await cluster.createPod('web-0', 'a');
  await cluster.until(() => cluster.ipOf(uid) !== undefined && cluster.phase('web-0') === 'Bound');
  const { server } = cluster.scene;
  const claims = { resources: ['vpcipclaims'] };
  const heal = server.api.faults.add({ ...claims, verbs: ['list'], action: { kind: 'empty-list' } });
  server.cutWatches();
  // Each create takes one of them.
  const count = server.api.faults.add({
    ...claims,
    verbs: ['create'],
    times: MOST_CREATES,
    action: { kind: 'delay', ms: 0 },
  });
  await cluster.pass(MINUTE_MS);
  const asked = { verb: 'create', resource: 'vpcipclaims', name: '', user: '', userAgent: '' };
  t.is(server.api.faults.actionsFor(asked).length, 1, `more than ${MOST_CREATES} creates in a minute`);
  count();
  heal();
  server.cutWatches();
  await cluster.deletePod('web-0');
  await cluster.until(() => cluster.phase('web-0') === 'Retained');
  t.pass();
});

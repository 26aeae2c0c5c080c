import test from 'ava';
import { GOOD, WrongScene } from './wrong-scene.ts';

test('the cloud does not answer from the start: event and metric name it, and it is over by itself', async (t) => {
  const scene = new WrongScene();
  await scene.configure(GOOD);
  const end = scene.host.faults.add({ fault: { kind: 'reset' } });
  await scene.start();
  const says = /subnets cannot be described: DescribeSubnets: .*NETWORK/;
  await scene.assertNamed(t, { reason: 'CloudUnreachable', says, name: 'tke-eni-ipamd' });
  end();
  await scene.join('n1');
  await scene.awaitWarm('n1');
  await scene.assertOver(t, 'n1');
  await scene.close();
});

test('the API server does not accept the token: metric names it, and it is over by itself', async (t) => {
  const scene = new WrongScene();
  await scene.configure(GOOD);
  const action = { kind: 'status', code: 401, reason: 'Unauthorized' } as const;
  const end = scene.server.api.faults.add({ userAgent: 'ipamd', action });
  await scene.start([], false);
  await scene.clock.advance(60_000);
  t.deepEqual(
    (await scene.problems()).filter((line) => line.startsWith('Unauthorized')),
    ['Unauthorized token'],
  );
  t.regex(scene.ipamd?.readiness() ?? '', /UNAUTHORIZED/);
  end();
  await scene.assertOthersGoOn(t);
  await scene.untilGone('Unauthorized token');
  t.deepEqual(await scene.problems(), []);
  await scene.close();
});

/** A listener of an Ingress that cannot be read: the targets of its others follow, and nothing of this one changes. */
import test from 'ava';
import { DIRECT, IngressWorld, ruleOf } from './ingress-world.ts';

const DONE_MS = 90_000;
const PORTS = { 'ingress.cloud.tencent.com/listen-ports': '[{"HTTP":80},{"HTTP":8080}]' };

test('a listener of an Ingress whose settings cannot be read keeps what it has, and targets follow on the other one', async (t) => {
  const world = await IngressWorld.start();
  const old = await world.serve('web');
  await world.create('site', { annotations: { [DIRECT]: 'true', ...PORTS }, spec: ruleOf('/a', 'www.example.com') });
  await world.advance(DONE_MS);
  const listenerOf = (port: number) => [...world.balancer().listeners.values()].find((one) => one.port === port);
  const targetsOf = (port: number) =>
    [...(listenerOf(port)?.layer7?.rules.values() ?? [])].map(({ targets }) =>
      [...targets.values()].map(({ ip, weight }) => `${ip} ${weight}`).toSorted(),
    );
  t.deepEqual(targetsOf(80), [[`${old} 10`]]);
  const broken = { sessionExpireTime: -1 };
  const { sessionExpireTime = 0 } = listenerOf(80) ?? {};
  Object.assign(listenerOf(80) ?? {}, broken);
  const next = await world.pods.run('web', 'web-1', { node: 'n1' });
  await world.pods.delete('web-0');
  await world.advance(DONE_MS);
  const followed = [[`${old} 0`, `${next} 10`].toSorted()];
  t.deepEqual(targetsOf(8_080), followed);
  t.deepEqual(targetsOf(80), [[`${old} 10`]], 'its rules are not known');
  Object.assign(listenerOf(80) ?? {}, { sessionExpireTime });
  await world.advance(DONE_MS);
  t.deepEqual(targetsOf(80), followed);
  await world.stop();
});

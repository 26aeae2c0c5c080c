import test from 'ava';
import { published, startWithLists, unprotected } from './published-lists.ts';

const DIRECT = 'service.cloud.tencent.com/direct-access';
const SERVICE = { metadata: { annotations: { [DIRECT]: 'true' } } };
const DONE_MS = 60_000;
const HTTP = [{ name: '', protocol: 'TCP', port: 8_080 }];
const refOf = (name: string, uid?: string) => ({
  kind: 'Pod',
  name,
  namespace: 'default',
  ...(uid === undefined ? {} : { uid }),
});
const ready = (ip: string, targetRef?: object) => ({
  addresses: [ip],
  conditions: { ready: true },
  ...(targetRef === undefined ? {} : { targetRef }),
});

test('a Pod that is nowhere is no target after a while, though a slice has it, also for a process that never saw it', async (t) => {
  const { world, pods } = await startWithLists();
  await world.create('web', SERVICE);
  const a = await pods.run('web', 'a', { node: 'n1' });
  const b = await pods.run('web', 'b', { node: 'n2' });
  await world.advance(DONE_MS);
  pods.holdSlices();
  await pods.end('a');
  await world.replace();
  await world.advance(3 * DONE_MS);
  t.deepEqual(world.listeners()['TCP/80'], [`${b}:8080 10`]);
  t.deepEqual([published(world, 'n1'), unprotected(world)], [[], []], `${a} may be given to another Pod`);
  await world.stop();
});

test('without a selector: Pods are bound by hand; what is no Pod, of another family or there twice does no harm', async (t) => {
  const { world, pods } = await startWithLists();
  const a = await pods.run('other', 'a', { node: 'n1' });
  const b = await pods.run('other', 'b', { node: 'n2' });
  await world.create('web', { ...SERVICE, spec: { selector: null } });
  pods.holdSlices();
  await pods.putSlice('web', 'one', {
    ports: HTTP,
    endpoints: [ready(a, refOf('a')), ready('203.0.113.7'), ready('10.0.0.200')],
  });
  await pods.putSlice('web', 'two', {
    ports: HTTP,
    endpoints: [ready(a, refOf('a')), ready(b, refOf('b', 'another-uid'))],
  });
  await pods.putSlice('web', 'six', { addressType: 'IPv6', ports: HTTP, endpoints: [ready('fd00::1', refOf('a'))] });
  await pods.putSlice('web', 'name', { addressType: 'FQDN', ports: HTTP, endpoints: [ready('a.example')] });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/80': [`${a}:8080 10`] });
  t.regex(world.events('DirectAccessImpossible').join(), /10\.0\.0\.200, 203\.0\.113\.7 are not bound .*no Pod/);
  t.deepEqual(published(world, 'n1'), [a]);
  await pods.end('a');
  await world.advance(4 * DONE_MS);
  t.deepEqual(
    world.listeners()['TCP/80']?.filter((one) => !one.endsWith(' 0')),
    [],
  );
  await world.stop();
});

test('TCP and UDP on one port, with Pods of their own in slices of their own', async (t) => {
  const { world, pods } = await startWithLists();
  const a = await pods.run('other', 'a', { node: 'n1' });
  const b = await pods.run('other', 'b', { node: 'n2' });
  const ports = [
    { name: 'dns', port: 53 },
    { name: 'dns-udp', port: 53, protocol: 'UDP' },
  ];
  await world.create('web', { ...SERVICE, spec: { selector: null, ports, sessionAffinity: 'ClientIP' } });
  pods.holdSlices();
  await pods.putSlice('web', 'tcp', {
    ports: [{ name: 'dns', protocol: 'TCP', port: 5_353 }],
    endpoints: [ready(a, refOf('a'))],
  });
  await pods.putSlice('web', 'udp', {
    ports: [{ name: 'dns-udp', protocol: 'UDP', port: 5_354 }],
    endpoints: [ready(b, refOf('b'))],
  });
  await world.advance(DONE_MS);
  t.deepEqual(world.listeners(), { 'TCP/53': [`${a}:5353 10`], 'UDP/53': [`${b}:5354 10`] });
  await world.stop();
});

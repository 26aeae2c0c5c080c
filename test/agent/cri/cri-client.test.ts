import test from 'ava';
import { netnsInInfo, openCriView } from '../../../agent/cri/cri-client.ts';
import { startCriServer } from '../../support/cri-server.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const PATIENT = new AbortController().signal;

test('openCriView: lists sandboxes and tells their addresses and netns', async (t) => {
  const dir = createTempDir('cri');
  const server = await startCriServer(dir.join('a.sock'), [
    { id: 's1', podName: 'p1', podNamespace: 'ns', podUid: 'u1', ips: ['10.0.0.5', 'fd00::5'], netns: '/run/netns/x' },
    { id: 's2', podName: 'p2', podNamespace: 'ns', state: 'not-ready' },
  ]);
  const view = openCriView([dir.join('none.sock'), dir.join('a.sock')]);
  t.teardown(async () => {
    view.close();
    await server.close();
    dir.close();
  });
  t.deepEqual(await view.list(PATIENT), [
    { id: 's1', state: 'ready', podName: 'p1', podNamespace: 'ns', podUid: 'u1' },
    { id: 's2', state: 'not-ready', podName: 'p2', podNamespace: 'ns', podUid: '' },
  ]);
  t.deepEqual(await view.network('s1', PATIENT), { ips: ['10.0.0.5', 'fd00::5'], netns: '/run/netns/x' });
  t.is(await view.network('s9', PATIENT), undefined);
  server.setBroken(true);
  await t.throwsAsync(view.list(PATIENT), { code: 'CRI_UNREACHABLE' });
  server.setBroken(false);
  t.is((await view.list(PATIENT)).length, 2, 'found again');
});

test('openCriView: lists the sandboxes of all runtimes, and asks the one that has a sandbox', async (t) => {
  const dir = createTempDir('cri-two');
  const sandbox = { podName: 'p', podNamespace: 'ns' };
  const other = await startCriServer(dir.join('a.sock'), [{ ...sandbox, id: 'both', state: 'not-ready' }]);
  const own = await startCriServer(dir.join('b.sock'), []);
  const view = openCriView([other.socketPath, dir.join('none.sock'), own.socketPath]);
  t.teardown(async () => {
    view.close();
    await Promise.all([other.close(), own.close()]);
    dir.close();
  });
  const ids = async () => (await view.list(PATIENT)).map(({ id, state }) => `${id} ${state}`);
  t.deepEqual(await ids(), ['both not-ready']);
  own.setSandboxes([
    { ...sandbox, id: 'pod', netns: '/run/netns/pod', handler: 'runsc' },
    { ...sandbox, id: 'both' },
  ]);
  t.deepEqual(await ids(), ['both ready', 'pod ready'], 'the runtime of the Pods began later');
  t.is((await view.network('pod', PATIENT))?.netns, '/run/netns/pod');
  t.is((await view.list(PATIENT)).find(({ id }) => id === 'pod')?.handler, 'runsc');
  other.setBroken(true);
  t.deepEqual(await ids(), ['pod ready', 'both ready'], 'one runtime less is no reason to list nothing');
  await t.throwsAsync(view.network('x', PATIENT), { code: 'CRI_UNREACHABLE' }, 'the broken one may have it');
  own.setBroken(true);
  await t.throwsAsync(view.list(PATIENT), { code: 'CRI_UNREACHABLE', message: /a\.sock: .*none\.sock: .*b\.sock: / });
});

test('openCriView: names every socket that it tried when none answers', async (t) => {
  const view = openCriView(['/nowhere/a.sock', '/nowhere/b.sock']);
  await t.throwsAsync(view.list(PATIENT), { code: 'CRI_UNREACHABLE', message: /a\.sock: no such socket; .*b\.sock/ });
});

test('netnsInInfo: reads the OCI spec that containerd and CRI-O put into the verbose status', (t) => {
  const spec = { linux: { namespaces: [{ type: 'pid' }, { type: 'network', path: '/var/run/netns/cni-1' }] } };
  t.is(netnsInInfo(JSON.stringify({ pid: 7, runtimeSpec: spec })), '/var/run/netns/cni-1');
  for (const other of [
    '',
    'text',
    'null',
    '[]',
    '{}',
    '{"runtimeSpec":{"linux":{"namespaces":[{"type":"network"}]}}}',
  ]) {
    t.is(netnsInInfo(other), undefined);
  }
});

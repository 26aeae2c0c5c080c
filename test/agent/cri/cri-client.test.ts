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

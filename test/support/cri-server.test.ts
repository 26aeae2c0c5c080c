import test from 'ava';
import { openCriView } from '../../agent/cri/cri-client.ts';
import { openCriClient } from './cri-client.ts';
import { startCriServer } from './cri-server.ts';
import { createTempDir } from './temp-dir.ts';

test('startCriServer: the agent reads sandboxes, addresses and netns from it', async (t) => {
  const dir = createTempDir('cri');
  const server = await startCriServer(dir.join('cri.sock'));
  const view = openCriView([server.socketPath]);
  const { signal } = new AbortController();
  try {
    t.deepEqual(await view.list(signal), []);
    server.setSandboxes([
      {
        id: 'a1',
        podName: 'web-0',
        podNamespace: 'shop',
        podUid: 'u1',
        ips: ['10.0.0.5', 'fd00::5'],
        netns: '/run/netns/x',
      },
      { id: 'b2', podName: 'web-1', podNamespace: 'shop', state: 'not-ready' },
    ]);
    t.deepEqual(await view.list(signal), [
      { id: 'a1', state: 'ready', podName: 'web-0', podNamespace: 'shop', podUid: 'u1' },
      { id: 'b2', state: 'not-ready', podName: 'web-1', podNamespace: 'shop', podUid: '' },
    ]);
    t.deepEqual(await view.network('a1', signal), { ips: ['10.0.0.5', 'fd00::5'], netns: '/run/netns/x' });
    t.deepEqual(await view.network('b2', signal), { ips: [] });
    t.is(await view.network('gone', signal), undefined);
    server.setBroken(true);
    await t.throwsAsync(view.list(signal), { message: /list the sandboxes/ });
  } finally {
    view.close();
    await server.close();
    dir.close();
  }
});

test('openCriClient: decodes what the stand-in runtime answers', async (t) => {
  const dir = createTempDir('cri');
  const server = await startCriServer(dir.join('cri.sock'));
  const client = openCriClient(server.socketPath);
  try {
    t.like(await client.call('Version', { version: 'v1' }), { runtimeName: 'stand-in', runtimeApiVersion: 'v1' });
    await t.throwsAsync(client.call('PodSandboxStatus', { podSandboxId: 'gone' }), { message: /NOT_FOUND/ });
  } finally {
    client.close();
    await server.close();
    dir.close();
  }
});

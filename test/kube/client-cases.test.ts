import test from 'ava';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { CLIENT_CASES } from './client-cases.ts';
import { openTestClient } from './kube-scene.ts';

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false } as const;

const server = await startKubeApi();
const { client, close } = openTestClient({ url: server.url, token: 'any' });
// A revision that a watch may no longer begin at, as on any server that has been up for a while.
server.store.compact();

test.after.always(async () => {
  close();
  await server.close();
});

for (const [index, { title, run }] of CLIENT_CASES.entries()) {
  test(`ours: ${title}`, async (t) => {
    const name = `case-${index}`;
    await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await run(t, client, name);
  });
}

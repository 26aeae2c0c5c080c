import test from 'ava';
import { startRealApi } from '../kube-api/real-api.ts';
import { CLIENT_CASES } from './client-cases.ts';
import { openTestClient } from './kube-scene.ts';

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false } as const;

const assets = process.env['KUBE_ASSETS'];

if (assets === undefined)
  test.skip('a real kube-apiserver: the client (set KUBE_ASSETS to a folder with one)', () => {});
else {
  const server = await startRealApi(assets);
  const { client, close } = openTestClient(server);
  test.after.always(async () => {
    close();
    await server.close();
  });
  for (const [index, { title, run }] of CLIENT_CASES.entries()) {
    test(`a real kube-apiserver: ${title}`, async (t) => {
      const name = `case-${index}`;
      await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      await run(t, client, name);
    });
  }
}

import test from 'ava';
import { contractClient } from './contract/client.ts';
import { CONTRACT_CASES } from './contract.ts';
import { startRealApi } from './real-api.ts';

const assets = process.env['KUBE_ASSETS'];

if (assets === undefined)
  test.skip('a real kube-apiserver: the contract (set KUBE_ASSETS to a folder with one)', () => {});
else {
  const server = await startRealApi(assets);
  const client = contractClient(server.url, server.token, server.ca);
  test.after.always(() => server.close());
  for (const [index, { title, run }] of CONTRACT_CASES.entries()) {
    test(`a real kube-apiserver: ${title}`, async (t) => {
      const namespace = `case-${index}`;
      await client.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
      await run(t, client, namespace);
    });
  }
}

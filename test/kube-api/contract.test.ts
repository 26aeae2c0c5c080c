import test from 'ava';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { contractClient } from './contract/client.ts';
import { CONTRACT_CASES } from './contract.ts';

const server = await startKubeApi({ authorization: 'rbac' });
const client = contractClient(server.url, server.addToken(ADMIN));
// A revision that a watch may no longer begin at, as on any server that has been up for a while.
server.store.compact();

test.after.always(() => server.close());

for (const [index, { title, run }] of CONTRACT_CASES.entries()) {
  test(`ours: ${title}`, async (t) => {
    const namespace = `case-${index}`;
    await client.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await run(t, client, namespace);
  });
}

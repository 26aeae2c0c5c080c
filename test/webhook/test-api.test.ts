import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { testAskedBy } from './asked-cases.ts';

await testAskedBy('our test API server', async () => {
  const server = await startKubeApi({ authorization: 'rbac' });
  return { url: server.url, token: server.addToken(ADMIN), ca: '', close: server.close };
});

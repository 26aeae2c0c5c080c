import test from 'ava';
import { openCriView } from '../../../agent/cri/cri-client.ts';
import { listRuntimeHandlers } from '../../../agent/cri/runtime-handlers.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { startCriServer } from '../../support/cri-server.ts';
import { createTempDir } from '../../support/temp-dir.ts';

test('listRuntimeHandlers: lists those that the runtime names, and none while it does not answer', async (t) => {
  const dir = createTempDir('handlers');
  const sandbox = { podName: 'p', podNamespace: 'ns' };
  const server = await startCriServer(dir.join('cri.sock'), [
    { ...sandbox, id: 's1', handler: 'runsc' },
    { ...sandbox, id: 's2' },
  ]);
  const view = openCriView([server.socketPath]);
  t.teardown(async () => {
    view.close();
    await server.close();
    dir.close();
  });
  t.deepEqual([...(await listRuntimeHandlers(view, systemClock))], [['s1', 'runsc']]);
  server.setBroken(true);
  t.is((await listRuntimeHandlers(view, systemClock)).size, 0);
  t.is((await listRuntimeHandlers(undefined, systemClock)).size, 0, 'no --cri-socket');
});
